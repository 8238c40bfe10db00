import { expect, test } from "vitest";
import { isCommonPassword } from "../../core/control/accounts";

test("common passwords are recognized in any case, with digits and signs behind them; others are not", () => {
  for (const common of [
    "password1",
    "Password1!",
    "PASSWORD",
    "football2026",
    "12345678",
    "qwertyuiop",
    "aaaaaaaaa",
  ])
    expect([common, isCommonPassword(common)]).toEqual([common, true]);
  for (const own of ["ada.lovelace", "Ada.Lovelace1815", "ada.lovelace@example.org", "basetide1"])
    expect([own, isCommonPassword(own, "ada.lovelace@example.org")]).toEqual([own, true]);
  for (const fine of [
    "correct horse",
    "correct horse battery",
    "a first password",
    "kX9$vQ2!mZ",
    "12345678 tulips",
  ])
    expect([fine, isCommonPassword(fine, "ada.lovelace@example.org")]).toEqual([fine, false]);
});
