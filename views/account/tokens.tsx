/** The account's API tokens: a table, and the form for a new one, which is shown only once. */
import {
  type ApiToken,
  type CurrentUser,
  can,
  scopeLabels,
  type TokenScope,
} from "../../core/control/accounts";
import { Badge, Card, CopyField, DialogLink, Empty, Note, Table } from "../components";
import { Ago } from "../components/ago";
import { Time } from "../components/time";
import { AccountFrame } from "./frame";
import { NewToken, type TokenFormErrors, type TokenFormValues } from "./new-token";

export interface TokensProps {
  currentUser: CurrentUser;
  tokens: ApiToken[];
  now: Date;
  consoleUrl: string;
  form: TokenFormValues;
  errors: TokenFormErrors;
  /** Just created. */
  token?: string | undefined;
}

export function Tokens(props: TokensProps) {
  const { currentUser, tokens, now, consoleUrl, form, errors, token } = props;
  return (
    <AccountFrame tab="/account/tokens">
      {token ? (
        <Note tone="good" title="Copy your token now. It will not be shown again.">
          <div class="stack">
            <CopyField id="new-token" label="Token" value={token} />
            <CopyField
              id="new-token-curl"
              label="Try it"
              value={`curl -s ${consoleUrl}/api/v1/bases -H 'Authorization: Bearer ${token}'`}
            />
          </div>
        </Note>
      ) : null}
      <Card id="tokens" title="API tokens">
        {can(currentUser.account.role, "write") ? <NewToken form={form} errors={errors} /> : null}
        <p class="muted">
          Tokens call the management API at <code class="wrap">{consoleUrl}/api/v1</code>, within their scopes
          and the role of the member who created them. See the <a href="/docs/api">API reference</a>.
        </p>
        {tokens.length === 0 ? (
          <Empty title="No tokens yet">Create one for each app that calls the API.</Empty>
        ) : (
          <Table
            caption="API tokens"
            head={[
              { text: "Name" },
              { text: "Token" },
              { text: "Scopes" },
              { text: "Created" },
              { text: "Expires" },
              { text: "Last used" },
              { text: "Action", isHidden: true },
            ]}
          >
            {tokens.map((one) => (
              <tr key={one.id}>
                <th scope="row" class="wrap">
                  {one.name}
                </th>
                <td class="nowrap">
                  <code>{one.prefix}…</code>
                </td>
                <td>{listScopes(one.scopes)}</td>
                <td class="nowrap">
                  <Ago at={one.createdAt} now={now} />
                </td>
                <td class="nowrap">
                  <Expiry at={one.expiresAt} now={now} />
                </td>
                <td class="nowrap">{one.lastUsedAt ? <Ago at={one.lastUsedAt} now={now} /> : "never"}</td>
                <td class="number">
                  <DialogLink kind="quiet" isSmall href={`/account/tokens/${one.id}/revoke`}>
                    Revoke<span class="visually-hidden"> {one.name}</span>
                  </DialogLink>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Card>
    </AccountFrame>
  );
}

function Expiry({ at, now }: { at: Date | null; now: Date }) {
  if (at === null) return <span class="muted">never</span>;
  if (at <= now) return <Badge tone="red">Expired</Badge>;
  return <Time at={at} form="date" />;
}

/** `Read, write`. */
function listScopes(scopes: readonly TokenScope[]): string {
  const text = scopes.map((scope) => scopeLabels[scope].label.toLowerCase()).join(", ");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
