/** The account's API tokens: a table, and the form for a new one, which is shown only once. */

import { type ApiToken, scopeLabels, type TokenScope } from "../../core/control/accounts";
import {
  Ago,
  Badge,
  Card,
  CopyField,
  DialogLink,
  Empty,
  FieldsForm,
  FormPanel,
  type FormState,
  hasErrors,
  Note,
  Table,
  Time,
} from "../components";
import { capitalized } from "../format";

interface TokensProps {
  tokens: ApiToken[];
  now: Date;
  consoleUrl: string;
  /** For a new one. */
  form: FormState;
  /** Just created. */
  token?: string | undefined;
}

export function Tokens(props: TokensProps) {
  const { tokens, now, consoleUrl, form, token } = props;
  return (
    <>
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
        <FormPanel id="new" action="/account/tokens" button="New token" isOpen={hasErrors(form)}>
          <FieldsForm action="/account/tokens" button="Create token" form={form} />
        </FormPanel>
        <p class="muted">
          Tokens call the management API at <code class="wrap">{consoleUrl}/api/v1</code>, within their scopes
          and the role of the member who created them. See the <a href="/docs/api">API reference</a>.
        </p>
        <Table
          caption="API tokens"
          rows={tokens}
          empty={<Empty title="No tokens yet">Create one for each app that calls the API.</Empty>}
          columns={(column) => [
            column({ text: "Name", isHead: true, class: "wrap" }, (one) => one.name),
            column({ text: "Token", class: "nowrap" }, (one) => <code>{one.prefix}…</code>),
            column("Scopes", (one) => listScopes(one.scopes)),
            column({ text: "Created", class: "nowrap" }, (one) => <Ago at={one.createdAt} now={now} />),
            column({ text: "Expires", class: "nowrap" }, (one) => <Expiry at={one.expiresAt} now={now} />),
            column({ text: "Last used", class: "nowrap" }, (one) =>
              one.lastUsedAt ? <Ago at={one.lastUsedAt} now={now} /> : "never",
            ),
            column({ text: "Action", isHidden: true, class: "number" }, (one) => (
              <DialogLink kind="quiet" isSmall href={`/account/tokens/${one.id}/revoke`}>
                Revoke<span class="visually-hidden"> {one.name}</span>
              </DialogLink>
            )),
          ]}
        />
      </Card>
    </>
  );
}

function Expiry({ at, now }: { at: Date | null; now: Date }) {
  if (at === null) return <span class="muted">never</span>;
  if (at <= now) return <Badge tone="red">Expired</Badge>;
  return <Time at={at} form="date" />;
}

/** `Read, write`. */
function listScopes(scopes: readonly TokenScope[]): string {
  return capitalized(scopes.map((scope) => scopeLabels[scope].label.toLowerCase()).join(", "));
}
