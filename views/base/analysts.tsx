/** The page for analysts: descriptions of a base's tables for their tools, and the related settings. */
import type { Base } from "../../core/control/bases";
import { ButtonLink, Card } from "../components";
import { Program } from "../components/program";

export function AnalystsPage(props: { base: Base; sources: string; diagram: string }) {
  const { base, sources, diagram } = props;
  const path = `/bases/${base.id}`;
  const { linkViews, history, historyDays, notify } = base.settings;
  return (
    <>
      <Card id="extras" title="For analysts">
        <p>
          Each table and column has a comment with its name, id, type and description in Airtable. In{" "}
          <code>psql</code>, <code>\d+</code> shows the comments.
        </p>
        <ul class="bullets">
          <li>Views over links: {linkViews ? "on" : "off"}</li>
          <li>
            History of changes: {history ? `on, ${historyDays} ${historyDays === 1 ? "day" : "days"}` : "off"}
          </li>
          <li>Notifications: {notify ? "on" : "off"}</li>
        </ul>
        <ButtonLink href={`${path}/settings#analysts`}>Change these settings</ButtonLink>
      </Card>
      <Program id="dbt-sources" title="dbt sources" name="sources.yml" code={sources}>
        <p>
          Save it in your dbt project as <code>models/sources.yml</code>.{" "}
          <a href={`${path}/dbt-sources.yml`} download>
            Download sources.yml
          </a>
        </p>
      </Program>
      <Program id="er-diagram" title="Diagram" name="Mermaid text" code={diagram}>
        <p>
          The tables and their links, as Mermaid text. GitHub, GitLab, Notion and many editors can draw it.{" "}
          <a href={`${path}/er-diagram.mmd`} download>
            Download er-diagram.mmd
          </a>
        </p>
      </Program>
    </>
  );
}
