/** The account's API tokens. A new one is shown only once. */
import type { ApiToken, CurrentUser } from "../../core/control/accounts";
import type { Errors } from "../auth/sign-up";
import { Button, Card, CopyField, Empty, Field, Note, Table } from "../components";
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
  done?: string | undefined;
}

export function Tokens(props: TokensProps) {
  const { currentUser, tokens, now, consoleUrl, name, errors, token } = props;
  return (
    <AccountFrame currentUser={currentUser} tab="/account/tokens" done={props.done}>
      {token ? (
        <Note tone="good" title="Copy your token now: it is not shown again">
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
          A token may do all that this console does, by the management API at{" "}
          <code class="wrap">{consoleUrl}/api/v1</code>. Its calls are described in an{" "}
          <a href="/openapi">OpenAPI document</a>.
        </p>
        {tokens.length === 0 ? (
          <Empty title="No tokens yet">Make one below, for each program that is to call it.</Empty>
        ) : (
          <Table
            caption="API tokens"
            head={[
              { text: "Name" },
              { text: "Made" },
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
                  <form method="post" action={`/account/tokens/${one.id}/revoke`}>
                    <Button kind="quiet" isSmall>
                      Revoke<span class="visually-hidden"> {one.name}</span>
                    </Button>
                  </form>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Card>
      <Card id="new" title="New token">
        <form method="post" action="/account/tokens" class="stack limited">
          <Field
            label="Name"
            name="name"
            value={name}
            error={errors.name}
            hint="What it is for: “deploy script”, “Lina's laptop”."
            maxLength={100}
            autocomplete="off"
            required
          />
          <Button>Make a token</Button>
        </form>
      </Card>
    </AccountFrame>
  );
}
