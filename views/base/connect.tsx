/**
 * How to connect to the database with SQL: per program, ready to paste; each part can be copied with a click. The password
 * is not on the page until the user asks for it. The tabs are links, so they work without JavaScript.
 */
import type { Base } from "../../core/control/bases";
import { locationName, PASSWORD_PLACEHOLDER, type SqlUser } from "../../core/control/placement";
import { qualifiedName } from "../../core/exports";
import { Button, CopyField, DialogLink, Form, Note, ProgramText } from "../components";
import { type ClientId, clients, guideOf, type SqlAccess } from "./connect-clients";
import { isEncrypted } from "./connect-urls";

interface ConnectProps {
  base: Base;
  access: Omit<SqlAccess, "schema" | "table">;
  client: ClientId;
  /** Whether the password is among the credentials; a placeholder stands for it otherwise. */
  isShown: boolean;
  /** Where the server is; null if that is not known, or customers host it. */
  location: string | null;
  /** If customers host the database, they change its password themselves. */
  isHosted: boolean;
  isWritable: boolean;
  /** The SQL user whose credentials they are; undefined: the database's own role. */
  sqlUser?: SqlUser | undefined;
}

export function Connect(props: ConnectProps) {
  const { base, access, client, location, isHosted, isWritable, sqlUser } = props;
  const { host, port, database, user, password } = access;
  return (
    <div class="stack connect">
      <p class="muted">
        {isWritable
          ? "Basetide's tables are read-only. You can create your own tables and views next to them."
          : "A read-only database."}{" "}
        The tables are in the schema <code>{base.database.schema}</code>.{" "}
        <a href="/docs/sql">How to query them</a>
      </p>
      {sqlUser ? (
        <p>
          These are the credentials of the SQL user <bdi>{sqlUser.name}</bdi>.{" "}
          <a href={`/bases/${base.id}/connect`}>Use the database's own role</a>
        </p>
      ) : null}
      <Readiness base={base} />
      <nav class="client-tabs" aria-label="Program">
        {Object.entries(clients).map(([id, name]) => {
          const href = `/bases/${base.id}/connect?with=${id}${sqlUser ? `&user=${sqlUser.id}` : ""}`;
          return (
            <a
              key={id}
              href={href}
              aria-current={id === client ? "page" : undefined}
              hx-get={href}
              hx-target="closest .connect"
              hx-select=".connect"
              hx-swap="outerHTML"
            >
              {name}
            </a>
          );
        })}
      </nav>
      <Guide {...props} />
      <section class="stack" aria-labelledby="connect-details">
        <h3 id="connect-details">Connection details</h3>
        <div class="copy-grid">
          <CopyField id="connect-host" label="Host" value={host} />
          <CopyField id="connect-port" label="Port" value={String(port)} />
          <CopyField id="connect-database" label="Database" value={database} />
          <CopyField id="connect-user" label="User" value={user} />
        </div>
        {props.isShown ? (
          <CopyField id="connect-password" label="Password" value={password} />
        ) : (
          <ShowPassword base={base} client={client} sqlUser={sqlUser} />
        )}
        <p class="muted small">
          {location ? `Location: ${locationName(location)}. ` : null}
          {tlsNote(access)}
        </p>
      </section>
      <Rotation base={base} isHosted={isHosted} sqlUser={sqlUser} />
    </div>
  );
}

/** The page with the password: asked for by a form of its own, because each look at a password is recorded. */
function ShowPassword({ base, client, sqlUser }: Pick<ConnectProps, "base" | "client" | "sqlUser">) {
  const action = `/bases/${base.id}/connect`;
  return (
    <Form
      action={action}
      hx-post={action}
      hx-target="closest .connect"
      hx-select=".connect"
      hx-swap="outerHTML"
      values={{ with: client }}
    >
      {sqlUser ? <input type="hidden" name="user" value={sqlUser.id} /> : null}
      <p class="muted">
        <Button isSmall>Show password</Button> It replaces <code>{PASSWORD_PLACEHOLDER}</code> above. The
        activity log records who has seen it.
      </p>
    </Form>
  );
}

function Rotation({ base, isHosted, sqlUser }: Pick<ConnectProps, "base" | "isHosted" | "sqlUser">) {
  const path = `/bases/${base.id}`;
  if (!isHosted) return <p class="muted">You host this database, so change its password there.</p>;
  if (sqlUser) {
    return (
      <div class="actions">
        <DialogLink href={`${path}/sql-users/${sqlUser.id}/rotate`}>Rotate password</DialogLink>
      </div>
    );
  }
  return (
    <>
      <details>
        <summary>Rotate password</summary>
        <Form action={`${path}/connect/rotate`} class="stack">
          <p>
            Creates a new password and disables the old one immediately. Open connections are not interrupted.
            SQL users keep their passwords.
          </p>
          <Button kind="danger">Rotate password</Button>
        </Form>
      </details>
      <p class="muted">
        <a href={`${path}/connect#sql-users`}>SQL users</a> give each program or person a password of their
        own.
      </p>
    </>
  );
}

function Guide({ base, access, client }: ConnectProps) {
  const { schema } = base.database;
  const guide = guideOf(client, { ...access, schema, table: qualifiedName(schema, sampleTable(base)) });
  const { steps, install, secrets, fields, program } = guide;
  return (
    <section class="stack" aria-label={clients[client]}>
      {install ? <CopyField id="connect-install" label="Install" value={install} /> : null}
      {steps ? (
        <ol class="list">
          {steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
      ) : null}
      {fields ? (
        <div class="copy-grid">
          {fields.map(([label, value]) => (
            <CopyField
              key={label}
              id={`field-${label.toLowerCase().replace(/\W+/g, "-")}`}
              label={label}
              value={value}
            />
          ))}
        </div>
      ) : null}
      {secrets?.map(({ id, label, value }) => (
        <CopyField key={id} id={id} label={label} value={value} />
      ))}
      {program ? <ProgramText id="connect-program" name={program.file} code={program.code} /> : null}
    </section>
  );
}

/** While the first sync runs: which tables can be queried already. */
function Readiness({ base }: { base: Base }) {
  if (base.sync) return null;
  const tables = base.progress?.tables ?? [];
  const ready = tables.filter(({ done }) => done);
  return (
    <Note title={`The first sync is running: ${ready.length} of ${tables.length} tables are ready`}>
      <p class="wrap">
        {ready.length === 0
          ? "You can connect now. Tables appear one by one, small ones first."
          : ready.map(({ name }, index) => (
              <span key={name}>
                {index > 0 ? ", " : ""}
                <code>{name}</code>
              </span>
            ))}
      </p>
    </Note>
  );
}

/** A table that can be read now, the largest one. */
function sampleTable({ tables, progress }: Base): string {
  const ready = progress?.tables.filter(({ done }) => done) ?? [];
  const known = [...tables, ...ready.map(({ name, records_done: records }) => ({ name, records }))];
  const [largest] = known.toSorted((a, b) => b.records - a.records);
  return largest?.name ?? "_sync_meta";
}

function tlsNote(access: ConnectProps["access"]): string {
  if (isEncrypted({ ...access, schema: "", table: "" })) return "Connections are encrypted with TLS.";
  return access.sslMode === "disable"
    ? "The server does not offer TLS: connect only over a private network or a tunnel."
    : "Connections are encrypted if the server offers TLS.";
}
