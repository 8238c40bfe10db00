/** The account's requests to the operator: a form, and the state of earlier requests. */
import type { OperatorRequest, RequestKind } from "../core/control/placement";
import {
  Ago,
  Badge,
  Button,
  Card,
  ErrorNote,
  Field,
  Form,
  FormPanel,
  type FormState,
  hasErrors,
  PageHead,
  SelectField,
  TextAreaField,
  type Tone,
  typedText,
} from "./components";

interface RequestsProps {
  requests: OperatorRequest[];
  /** Databases that can be made writable. */
  databases: { id: string; name: string }[];
  form: FormState;
  now: Date;
}

const kindNames: Record<RequestKind, string> = {
  region: "Another region",
  writable: "A writable database",
  shared_database: "Several bases in one database",
  other: "Something else",
};

export function RequestsPage(props: RequestsProps) {
  const { requests, databases, form, now } = props;
  const typed = (name: string) => ({ name, value: typedText(form, name), error: form.errors[name] });
  return (
    <>
      <PageHead
        title="Requests"
        lead="Ask the operator of this service for another region, a writable database, or several bases in one database."
      />
      <FormPanel id="ask" action="/requests" button="New request" isOpen={hasErrors(form)}>
        <Form action="/requests" class="stack rows">
          {form.errors.form ? <ErrorNote>{form.errors.form}</ErrorNote> : null}
          <SelectField
            label="Request"
            {...typed("kind")}
            options={Object.entries(kindNames).map(([value, text]) => ({ value, text }))}
          />
          <div class="for-region">
            <Field
              label="Region"
              {...typed("region")}
              placeholder="eu-central-1"
              hint="For another region: the region of your new databases."
            />
          </div>
          <div class="for-writable">
            <SelectField
              label="Database"
              {...typed("database")}
              options={[
                {
                  value: "",
                  text: databases.length === 0 ? "No database can be made writable" : "Choose one",
                },
                ...databases.map(({ id, name }) => ({ value: id, text: name })),
              ]}
              hint="For a writable database: you can then create your own tables and views in it. Basetide's tables stay read-only."
            />
          </div>
          <TextAreaField
            label="Message"
            {...typed("message")}
            maxLength={2000}
            hint="Details for the operator. For several bases in one database: which bases, and the name of the schema for each."
          />
          <Button kind="primary">Send</Button>
        </Form>
      </FormPanel>
      <Card id="asked" title="Your requests">
        {requests.length === 0 ? (
          <p class="muted">No requests yet. Your requests and their answers appear here.</p>
        ) : null}
        <ul class="log">
          {requests.map((request) => (
            <li key={request.id}>
              <RequestStateBadge request={request} />
              <div>
                <RequestSubject request={request} />
                {request.answer ? (
                  <p class="wrap">
                    <strong>The operator:</strong> {request.answer}
                  </p>
                ) : null}
                <p class="muted small">
                  <Ago at={request.decidedAt ?? request.createdAt} now={now} />
                </p>
              </div>
            </li>
          ))}
        </ul>
      </Card>
    </>
  );
}

const states: Record<OperatorRequest["state"], [word: string, tone: Tone]> = {
  open: ["Open", "neutral"],
  approved: ["Approved", "green"],
  denied: ["Denied", "red"],
};

export function RequestStateBadge({ request }: { request: OperatorRequest }) {
  const [word, tone] = states[request.state];
  return <Badge tone={tone}>{word}</Badge>;
}

export function RequestSubject({ request }: { request: OperatorRequest }) {
  const subject = request.region ?? request.database;
  return (
    <>
      <p>
        <strong>{kindNames[request.kind]}</strong> {subject ? <code>{subject}</code> : null}
      </p>
      {request.message ? <p class="wrap pre-line">{request.message}</p> : null}
    </>
  );
}
