/** The account's API tokens. A new one is shown only once. */
import type { ApiToken, CurrentUser } from "../../core/control/accounts";
import type { Errors } from "../auth/sign-up";
import { Button, Card, CopyField, DialogLink, Empty, Field, Note, Table } from "../components";
import { Ago } from "../components/ago";
import { AccountFrame } from "./frame";

export interface TokensProps {
  currentUser: CurrentUser;
  tokens: ApiToken[];
  now: Date;
  consoleUrl: string;
  name: string;
  errors: Errors<"name">;
  /** Just created. */
  token?: string | undefined;
}

export function Tokens(props: TokensProps) {
  const { currentUser, tokens, now, consoleUrl, name, errors, token } = props;
  return (
    <AccountFrame currentUser={currentUser} tab="/account/tokens">
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
        <p class="muted">
          A token can do everything that this console can, through the management API at{" "}
          <code class="wrap">{consoleUrl}/api/v1</code>. The API is described in an{" "}
          <a href="/docs/api">API reference</a>.
        </p>
        {tokens.length === 0 ? (
          <Empty title="No tokens yet">Create one below for each app that calls the API.</Empty>
        ) : (
          <Table
            caption="API tokens"
            head={[
              { text: "Name" },
              { text: "Created" },
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
                  <Ago at={one.createdAt} now={now} />
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
      <Card id="new" title="New token">
        <form method="post" action="/account/tokens" class="stack rows">
          <Field
            label="Name"
            name="name"
            value={name}
            error={errors.name}
            hint="What it is for, such as “deploy script” or “Lina's laptop”."
            maxLength={100}
            autocomplete="off"
            required
          />
          <Button>Create token</Button>
        </form>
      </Card>
    </AccountFrame>
  );
}
