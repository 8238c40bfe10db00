/** The switch of the account's public status page, and its link. */
import { Button, ButtonLink, Card, CopyField, Form } from "../components";
import { AccountFrame } from "./frame";

export function StatusSettings(props: {
  /** Null: the page is off. */
  url: string | null;
}) {
  const { url } = props;
  return (
    <AccountFrame tab="/account/status">
      <Card id="status-page" title="Public status page">
        <p class="muted">
          Shows the name of each base, how fresh its data is, and the outages of the last 90 days to everyone
          who has the link. It never shows rows, tables or errors.
        </p>
        {url ? (
          <div class="stack">
            <CopyField id="status-url" label="Link" value={url} />
            <div class="actions">
              <ButtonLink href={url}>Open</ButtonLink>
              <Form action="/account/status" values={{ change: "renew" }}>
                <Button title="The current link stops working">New link</Button>
              </Form>
              <Form action="/account/status" values={{ change: "off" }}>
                <Button kind="danger">Turn off</Button>
              </Form>
            </div>
          </div>
        ) : (
          <Form action="/account/status" values={{ change: "on" }}>
            <Button kind="primary">Turn on</Button>
          </Form>
        )}
      </Card>
    </AccountFrame>
  );
}
