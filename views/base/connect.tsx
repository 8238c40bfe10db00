/**
 * The SQL connection details: each part can be copied with a click, and the password is hidden until the user shows it.
 */
import type { Base } from "../../core/control/bases";
import type { Credentials } from "../../core/control/placement";
import { Button, CopyField } from "../components";

interface ConnectProps {
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
          ? "Basetide's tables are read-only. You can create your own tables and views next to them."
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
          <summary>Rotate password</summary>
          <form method="post" action={`/bases/${base.id}/connect/rotate`} class="stack">
            <p>
              Creates a new password and disables the old one immediately. Open connections are not
              interrupted.
            </p>
            <Button kind="danger">Rotate password</Button>
          </form>
        </details>
      ) : (
        <p class="muted">You host this database, so change its password there.</p>
      )}
    </div>
  );
}
