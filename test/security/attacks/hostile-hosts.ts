/** Invalid values of `Host`, known ones and generated ones. */
import type { Random } from "../../../apps/sandbox/random";

const KNOWN = [
  "1.2.3.4.5",
  "x.999",
  "256.256.256.256",
  "xn--a",
  "x:999999",
  "x:0x",
  "",
  "a b",
  "a|b",
  "a%00b",
  "[::1",
  "[",
  "a<b",
  "x/y",
  "u@x",
  "x\\y",
  "x?y",
  "x#y",
  "%zz",
  "x:",
  ":80",
  "..",
  "999999999999",
  "0x100000000",
  "a,b",
  "x/..",
];
const ODD = "[]<>|%@:/\\?#^`{} \t.0123456789abxé";

/** One in five is valid: the result must not depend on the host. */
export function anyHost(random: Random): string | undefined {
  if (random.chance(0.05)) return undefined;
  if (random.chance(0.2)) return random.pick(["x", "localhost", "127.0.0.1", "api.airtable.com"]);
  if (random.chance(0.6)) return random.pick(KNOWN);
  return Array.from({ length: random.int(1, 12) }, () => random.pick([...ODD])).join("");
}
