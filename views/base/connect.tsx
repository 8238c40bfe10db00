/**
 * The SQL connection details: each part can be copied with a click, and the password is hidden until the user shows it.
 */
import type { Base } from "../../core/control/bases";
import type { Credentials } from "../../core/control/placement";
import { Button, CopyField } from "../components";

export interface ConnectProps {
  base: Base;
  credentials: Credentials;
  /** If customers host the database, they change its password themselves. */
  isHosted: boolean;
  isWritable: boolean;
}

const HIDDEN = "••••••••";

export function Connect({ base, credentials, isHosted, isWritable }: ConnectProps) {
  const { url, psql, host, port, database, user, password } = credentials;
  const hidden = (text: string) =>
    password === ""
      ? text
      : text.replaceAll(encodeURIComponent(password), HIDDEN).replaceAll(password, HIDDEN);
  return (
    <div class="stack connect">
      <p class="muted">
        {isWritable
          ? "Our tables are read-only; you may make tables and views of your own beside them."
          : "A read-only database."}{" "}
        The tables are in the schema <code>{base.database.schema}</code>.
      </p>
      <CopyField id="connect-url" label="Connection URL" value={url} isSecret mask={hidden(url)} />
      <CopyField id="connect-psql" label="psql command" value={psql} isSecret mask={hidden(psql)} />
      <div class="copy-grid">
        <CopyField id="connect-host" label="Host" value={host} />
        <CopyField id="connect-port" label="Port" value={String(port)} />
        <CopyField id="connect-database" label="Database" value={database} />
        <CopyField id="connect-user" label="User" value={user} />
      </div>
      <CopyField id="connect-password" label="Password" value={password} isSecret />
      {isHosted ? (
        <details>
          <summary>Rotate the password</summary>
          <form method="post" action={`/bases/${base.id}/connect/rotate`} class="stack">
            <p>
              The role gets a new password, and the old one opens nothing from then on. Whoever is connected
              stays so.
            </p>
            <Button kind="danger">Rotate the password</Button>
          </form>
        </details>
      ) : (
        <p class="muted">This database is hosted by you: its password is changed there.</p>
      )}
    </div>
  );
}
