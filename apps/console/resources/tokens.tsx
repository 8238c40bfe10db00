/** The account's API tokens. They are made and revoked in the console only, so that no token can make another one. */
import { t } from "elysia";
import { createToken, listTokens, revokeToken, scopeLabels, scopes } from "../../../core/control/accounts";
import { BasetideError } from "../../../core/errors";
import { AccountFrame } from "../../../views/account/frame";
import { Tokens } from "../../../views/account/tokens";
import type { FormFields } from "../../../views/components";
import { mails } from "../auth/mails";
import { emptyForm } from "../resource-kit/read-form";
import { ofAccount, resource } from "../resource-kit/resource";
import { oneOf } from "../schemas/parts";

const PAGE = "/account/tokens";

const expiries = ["30", "90", "365", "never"] as const;
const expiryTexts = { 30: "After 30 days", 90: "After 90 days", 365: "After a year", never: "Never" };

const fields: FormFields = {
  name: {
    kind: "text",
    label: "Name",
    hint: "What it is for, such as “deploy script” or “Lina's laptop”.",
    maxLength: 100,
  },
  scopes: {
    kind: "switches",
    label: "Scopes",
    prefix: "scope",
    wrong: "Choose at least one scope.",
    options: scopes.map((value) => ({ value, ...scopeLabels[value] })),
  },
  expires: {
    kind: "select",
    label: "Expires",
    options: expiries.map((value) => ({ value, text: expiryTexts[value] })),
    hint: "An expired token no longer works. Replace it before.",
  },
};

/** A new token can read, and expires, unless the user chooses otherwise. */
const DEFAULT_EXPIRY = "90";
const firstTyped = { scopes: ["read"], expires: DEFAULT_EXPIRY };

export const tokensResource = resource({
  tag: "Account",
  scope: ofAccount,
  async find({ db }, account, params) {
    const token = (await listTokens(db, account.id)).find(({ id }) => id === params.id);
    if (!token) throw new BasetideError("not_found", "This token does not exist");
    return { ...token, accountId: account.id };
  },
  console: {
    facts: () => ({ active: "api" }),
    frame: (_, content) => <AccountFrame tab={PAGE}>{content}</AccountFrame>,
    all: {
      path: PAGE,
      title: "API tokens",
      show: async ({ db, config }, { id }, { form, once }) => (
        <Tokens
          tokens={await listTokens(db, id)}
          consoleUrl={config.consoleUrl}
          now={new Date()}
          form={form ?? emptyForm(fields, firstTyped)}
          token={once.token}
        />
      ),
    },
  },
})
  .all({
    body: t.Object({
      name: t.String({ minLength: 1, maxLength: 100 }),
      scopes: t.Array(oneOf(scopes), { minItems: 1 }),
      expires: t.Optional(oneOf(expiries)),
    }),
    async run(
      { db, auth, config, actor },
      account,
      { name, scopes: chosen, expires = DEFAULT_EXPIRY },
      { user },
    ) {
      const expiresInDays = expires === "never" ? undefined : Number(expires);
      const options = { actor, scopes: chosen, expiresInDays, ...(user && { userId: user.userId }) };
      const token = await createToken(db, account.id, name, options);
      const mail = mails(config.consoleUrl).newToken(account.email, name, actor.name, chosen);
      auth.notify(mail, "token_notice");
      return token;
    },
    form: { path: PAGE, fields, to: PAGE, done: (token) => ({ once: { token } }) },
  })
  .one({
    run: ({ db, actor }, { id, accountId }) => revokeToken(db, accountId, id, actor),
    form: {
      path: `${PAGE}/:id/revoke`,
      to: PAGE,
      done: "Token revoked. It no longer works.",
      asks: ({ name }) => ({
        title: `Revoke the token “${name}”?`,
        effect: <p>Programs that use it lose access at once. This cannot be undone.</p>,
        button: "Revoke token",
        isDanger: true,
        back: PAGE,
      }),
    },
  });
