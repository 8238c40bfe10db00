/** Requests of an account to the operator of the service: another region, a writable database, and the like. */
import { t } from "elysia";
import { createRequest, listDatabases, listRequests, requestKinds } from "../../../core/control/placement";
import type { FormFields } from "../../../views/components";
import { RequestsPage } from "../../../views/requests";
import { emptyForm } from "../resource-kit/read-form";
import { ofAccount, resource } from "../resource-kit/resource";
import { named, nullable, oneOf, strict, timestamp } from "../schemas/parts";

const API = "/api/v1/requests";
const PAGE = "/requests";

const answer = named(
  "OperatorRequest",
  t.Object({
    id: t.String(),
    kind: t.String(),
    database_id: nullable(t.String()),
    region: nullable(t.String()),
    message: t.String(),
    state: oneOf(["open", "approved", "denied"]),
    answer: t.String({ description: "The operator's answer" }),
    created_at: timestamp,
    decided_at: nullable(timestamp),
  }),
);

/** The page draws them: which are needed depends on the kind. */
const fields: FormFields = {
  kind: { kind: "own", label: "Request", wrong: "Describe your request" },
  region: { kind: "own", label: "Region" },
  database: { kind: "own", label: "Database" },
  message: { kind: "own", label: "Message" },
};

export const requestsResource = resource({
  tag: "Requests",
  scope: ofAccount,
  console: {
    facts: () => ({ active: "help" }),
    frame: (_, content) => content,
    all: {
      path: PAGE,
      title: "Requests",
      async show({ db }, { id }, { form }) {
        const [requests, all] = await Promise.all([
          listRequests(db, { accountId: id }),
          listDatabases(db, id),
        ]);
        const databases = all.filter(({ clusterId, isWritable }) => clusterId !== null && !isWritable);
        return (
          <RequestsPage {...{ requests, databases, now: new Date() }} form={form ?? emptyForm(fields)} />
        );
      },
    },
  },
})
  .all({
    api: `GET ${API}`,
    summary: "Requests to the operator, open ones first",
    answer: t.Array(answer),
    run: ({ db }, { id }) => listRequests(db, { accountId: id }),
  })
  .all({
    api: `POST ${API}`,
    summary: "Ask the operator: region, writable database, several bases in one database",
    raises: ["not_found", "already_exists", "conflict"],
    status: 201,
    body: named(
      "NewOperatorRequest",
      t.Object(
        {
          kind: oneOf(requestKinds),
          database_id: t.Optional(
            t.String({ maxLength: 100, description: "For `writable`: the id of the database" }),
          ),
          region: t.Optional(t.String({ maxLength: 40, description: "For `region`: its code" })),
          message: t.Optional(t.String({ maxLength: 2000 })),
        },
        strict,
      ),
      { kind: "region", region: "eu-central-1", message: "Our data must stay in the EU" },
    ),
    answer,
    run: ({ db, actor }, { id }, { database_id: databaseId, ...asked }) =>
      createRequest(db, id, { ...asked, databaseId }, actor),
    form: {
      path: PAGE,
      fields,
      read: ({ database, ...typed }) => ({ errors: {}, body: { ...typed, database_id: database } }),
      errorAt: "form",
      to: PAGE,
      done: "Request sent. The answer will appear here.",
    },
  });
