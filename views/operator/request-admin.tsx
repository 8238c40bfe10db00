/** Requests of customers, to approve or deny with a message. */
import type { OperatorRequest } from "../../core/control/placement";
import { Ago, Button, Card, Field } from "../components";
import { RequestStateBadge, RequestSubject } from "../requests";

const effects: Record<OperatorRequest["kind"], string> = {
  region: "If you approve, the account's new databases are created in this region.",
  writable:
    "If you approve, the database's role may create tables and views. Basetide's tables stay read-only.",
  shared_database:
    "Approving changes nothing automatically. Place the bases first, then approve and say where they are.",
  other:
    "Approving changes nothing automatically. Carry out the request first, then approve and say what you did.",
};

/** A member other than the owner, or a token. */
function Requester({ request: { email, requestedBy } }: { request: OperatorRequest }) {
  if (requestedBy === null || requestedBy === email) return null;
  return (
    <>
      {" "}
      (by <bdi>{requestedBy}</bdi>)
    </>
  );
}

export function RequestAdmin({ requests, now }: { requests: OperatorRequest[]; now: Date }) {
  const open = requests.filter((request) => request.state === "open");
  const closed = requests.filter((request) => request.state !== "open");
  return (
    <>
      {open.length === 0 ? <Card id="none">No open requests. Requests of customers appear here.</Card> : null}
      {open.map((request) => (
        <Card key={request.id} id={request.id}>
          <RequestSubject request={request} />
          <p class="muted small">
            <bdi>{request.email}</bdi>
            <Requester request={request} />, <Ago at={request.createdAt} now={now} />. {effects[request.kind]}
          </p>
          <form method="post" action={`/operator/requests/${request.id}`} class="stack rows">
            <Field
              label="Answer to the customer"
              name="answer"
              id={`answer-${request.id}`}
              maxLength={2000}
              hint="The customer sees it under Requests."
            />
            <div class="actions">
              <Button name="decision" value="approve" kind="primary">
                Approve
              </Button>
              <Button name="decision" value="deny" kind="danger">
                Deny
              </Button>
            </div>
          </form>
        </Card>
      ))}
      {closed.length > 0 ? (
        <Card id="closed" title="Decided">
          <ul class="log">
            {closed.map((request) => (
              <li key={request.id}>
                <RequestStateBadge request={request} />
                <div>
                  <RequestSubject request={request} />
                  {request.answer ? <p class="wrap muted">{request.answer}</p> : null}
                  <p class="muted small">
                    <bdi>{request.email}</bdi>, <Ago at={request.decidedAt ?? request.createdAt} now={now} />
                  </p>
                </div>
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
    </>
  );
}
