/** Listening to an abort together with others. */
import { expect, test, vi } from "vitest";
import { offAbort, onAbort } from "../../core/async";

test("an abort calls everything that still listens, once, and the signal has one listener", () => {
  const controller = new AbortController();
  const add = vi.spyOn(controller.signal, "addEventListener");
  const called: number[] = [];
  const callbacks = Array.from({ length: 5 }, (_, index) => () => void called.push(index));
  // The first one ends another one.
  onAbort(controller.signal, () => offAbort(controller.signal, callbacks[3]!));
  for (const callback of callbacks) onAbort(controller.signal, callback);
  offAbort(controller.signal, callbacks[1]!);
  expect(add).toHaveBeenCalledTimes(1);
  controller.abort();
  controller.abort();
  expect(called).toEqual([0, 2, 4]);
});

test("signals do not call what listens to others", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const callback = vi.fn();
  onAbort(one.signal, callback);
  onAbort(other.signal, () => {});
  other.abort();
  offAbort(other.signal, callback);
  expect(callback).not.toHaveBeenCalled();
  one.abort();
  expect(callback).toHaveBeenCalledTimes(1);
});
