/** The texts of alerts: for people, for programs, and with any names that other people have chosen. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { alertKinds } from "../../core/alerts";
import { subjectOf, textOf } from "../../core/alerts/format";
import type { Alert } from "../../core/alerts/kinds";
import { bodyOf, signatureOf } from "../../core/alerts/payload";
import { errorCodes, nextStep } from "../../core/errors";

const CONSOLE = "https://console.example";
const at = new Date("2026-11-21T10:00:00Z");

function alertOf(given: Partial<Omit<Alert, "facts">> & { facts?: Partial<Alert["facts"]> } = {}): Alert {
  const { facts, ...rest } = given;
  const usual = {
    name: "Inventory",
    since: "2026-11-21T09:57:12Z",
    reason: "Failing for 3 min: Away",
    times: 1,
  };
  return {
    id: "1",
    kind: "red",
    at,
    baseId: "bas_1",
    workspaceId: null,
    ...rest,
    facts: { ...usual, ...facts },
  };
}

test("one alert has its subject, time, reason, remedy and link", () => {
  expect(subjectOf([alertOf()])).toBe("Inventory has turned red");
  expect(textOf([alertOf()], CONSOLE)).toBe(
    [
      "Inventory has turned red.",
      "Since 2026-11-21 09:57 UTC: Failing for 3 min: Away.",
      "What to do: usually nothing. Basetide retries automatically, and the data from the last sync stays queryable.",
      "https://console.example/bases/bas_1",
    ].join("\n\n"),
  );
});

test("many alerts are counted by kind, and the first twenty are named", () => {
  const reds = Array.from({ length: 30 }, (_, index) => alertOf({ facts: { name: `Base ${index + 1}` } }));
  const alerts = [...reds, alertOf({ kind: "recovered" })];
  expect(subjectOf(alerts)).toBe("30 bases have turned red, 1 base has recovered");
  const text = textOf(alerts, CONSOLE);
  expect(text).toContain("- Base 20 has turned red.");
  expect(text).not.toContain("Base 21");
  expect(text).toContain("And 11 more: https://console.example/bases");
});

test("a message that could not be delivered at first has its original time", () => {
  const message = { id: "msg_1", at, alerts: [alertOf()] };
  const textAfter = (minutes: number) =>
    (
      JSON.parse(bodyOf("json", message, CONSOLE, new Date(at.getTime() + minutes * 60_000))) as {
        text: string;
      }
    ).text;
  expect(textAfter(1)).toBe(textOf([alertOf()], CONSOLE));
  expect(textAfter(20)).toBe(
    `This message is from 2026-11-21 10:00 UTC and could not be delivered earlier.\n\n${textOf([alertOf()], CONSOLE)}`,
  );
});

test("a Slack message never exceeds the limit of Slack and compatible services", () => {
  const changes = Array.from({ length: 10 }, (_, index) => `${"x".repeat(600)} ${index}`);
  const alerts = Array.from({ length: 20 }, () => alertOf({ kind: "schema_changed", facts: { changes } }));
  const { text } = JSON.parse(bodyOf("slack", { id: "msg_1", at, alerts }, CONSOLE, at)) as { text: string };
  expect(text).toHaveLength(12_000);
  expect(text).toMatch(/^20 bases have changed their schema.*…$/s);
});

test("every kind, and every error that stops a base, has a remedy", () => {
  const stopping = Object.keys(errorCodes).filter(
    (code) => nextStep[code as keyof typeof nextStep] === "needs_attention",
  );
  for (const code of stopping) {
    const text = textOf([alertOf({ kind: "needs_attention", facts: { code } })], CONSOLE);
    expect(text, code).toContain("What to do: ");
    expect(text, code).not.toContain("which says what is missing");
  }
  for (const kind of alertKinds.filter((one) => one !== "recovered")) {
    expect(textOf([alertOf({ kind })], CONSOLE), kind).toContain("What to do: ");
  }
});

test("a base's name can neither forge a line nor mention users in Slack", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc.string({ maxLength: 800 }),
      (name, reason) => {
        const alert = alertOf({
          facts: { name: `${name}\r\nBcc: all@example.org`, reason: `${reason}\nWhat to do: pay` },
        });
        expect(subjectOf([alert])).not.toMatch(/[\r\n\0]/);
        expect(textOf([alert], CONSOLE).split("\n\n")).toHaveLength(4);
        expect(textOf([alert, alert], CONSOLE).match(/^- /gm)).toHaveLength(2);
        const slack = bodyOf("slack", { id: "msg_1", at, alerts: [alert] }, CONSOLE, at);
        expect(slack).not.toMatch(/[<>]/);
        expect(JSON.parse(slack)).toEqual({ text: expect.any(String), mrkdwn: false });
      },
    ),
  );
});

test("the signature covers the time and the body, and differs with either and with the secret", () => {
  const one = signatureOf("whsec_a", "{}", at);
  expect(one).toMatch(/^t=1795255200,v1=[0-9a-f]{64}$/);
  const others = [
    signatureOf("whsec_b", "{}", at),
    signatureOf("whsec_a", "{ }", at),
    signatureOf("whsec_a", "{}", new Date(at.getTime() + 1000)),
  ];
  expect(new Set([one, ...others].map((text) => text.split("v1=")[1])).size).toBe(4);
});
