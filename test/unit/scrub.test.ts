import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { BasetideError, errorCodes } from "../../core/errors";
import { scramVerifier } from "../../core/replica/role-password";
import { passwordOf, scrub, scrubberOf } from "../../core/scrub";

const letters = fc
  .string({ unit: fc.constantFrom(..."ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), minLength: 12, maxLength: 40 })
  .map((text) => `${text}7`);

/** Where secrets occur: the surrounding text stays. */
const places: ((secret: string) => string)[] = [
  (secret) => `connecting to postgres://basetide:${secret}@db.example:5432/x failed`,
  (secret) => `"smtp://u:${secret}@mail.example" cannot be parsed as a URL`,
  (secret) => `postgres://u:pa/ss${secret}@h:notaport/x`,
  (secret) => `Authorization: Bearer ${secret}`,
  (secret) => JSON.stringify({ headers: { authorization: `Bearer ${secret}` } }),
  (secret) => JSON.stringify({ deep: { deeper: { password: secret, apiKey: secret, api_key: secret } } }),
  (secret) => `alter role bt_x password '${secret}'; select 1`,
  (secret) => `the key pat${secret}.${secret} was refused`,
  (secret) => `cookie: theme=dark; basetide.session_token=${secret}.abc%3D; other=1`,
];

test("everything that looks like a secret is removed from any text, and nothing twice", () => {
  fc.assert(
    fc.property(
      letters,
      fc.constantFrom(...places),
      fc.string(),
      fc.string(),
      (secret, place, before, after) => {
        const text = `${before} ${place(secret)} ${after}`;
        fc.pre(!before.includes(secret) && !after.includes(secret));
        const scrubbed = scrub(text);
        expect(scrubbed).not.toContain(secret);
        expect(scrubbed).toContain("[redacted]");
        expect(scrub(scrubbed)).toBe(scrubbed);
      },
    ),
  );
});

test("our own texts stay as they are", () => {
  const words = [
    ...Object.values(errorCodes),
    "must be a Postgres URL (postgres://user:password@host:port/database)",
    "The destination's URL must have the form postgres://user:password@host:port/database",
    "see http://localhost:4000/api.airtable.com and https://example.org/a@b",
    '{"level":30,"role":"worker","baseId":"bas_0123456789abcdefghjk","port":4200,"msg":"worker listening"}',
    "A token is bt_ and 43 letters; an API key begins with pat",
  ];
  for (const word of words) expect(scrub(word)).toBe(word);
});

test("known secrets are removed in any form, also as a URL writes them", () => {
  const clean = scrubberOf(["p@ss/word!", undefined, "short", "plain-looking"]);
  expect(clean("p@ss/word! p%40ss%2Fword! plain-looking short")).toBe(
    "[redacted] [redacted] [redacted] short",
  );
  expect(passwordOf("postgres://u:p%40ss%2Fword!@h/x")).toBe("p@ss/word!");
  expect(passwordOf("postgres://u@h/x")).toBe(undefined);
  expect(passwordOf("no url")).toBe(undefined);
});

test("no error of ours contains a secret in its message, whatever it quotes", () => {
  const error = new BasetideError("replica_unavailable", "Replica: postgres://u:hunter2hunter2@h is away");
  expect(error.message).toBe("Replica: postgres://u:[redacted]@h is away");
});

test("a password is sent to Postgres as a verifier (RFC 5803)", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme-ascii", minLength: 1 }),
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      (password, bytes) => {
        const salt = Buffer.from(bytes);
        const [, rounds, salted, stored, server] =
          /^SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)$/.exec(scramVerifier(password, salt)) ?? [];
        expect(salted).toBe(salt.toString("base64"));
        // How a server checks a client's proof: RFC 5802, section 3.
        const key = pbkdf2Sync(password, salt, Number(rounds), 32, "sha256");
        const clientKey = createHmac("sha256", key).update("Client Key").digest();
        expect(stored).toBe(createHash("sha256").update(clientKey).digest("base64"));
        expect(server).toBe(createHmac("sha256", key).update("Server Key").digest("base64"));
      },
    ),
    { numRuns: 20 },
  );
});
