/**
 * Requests of customers to the operator: another region, a writable database, several bases in one database. The
 * approval of one of the first two also carries it out; the others are done by a person, who says so in the answer.
 */
import type { Actor, Context, Db } from "../../context";
import { BasetideError, conflict, invalid } from "../../errors";
import { isId, newId, rowById } from "../../ids";
import { checkedText, isUniqueViolation, storedMessage } from "../../postgres";
import { recordChange } from "../audit";
import { listClusters } from "./clusters";
import { getDatabase, setDatabaseWritable } from "./databases";

const REGION = /^[a-z0-9][a-z0-9-]{1,39}$/;

export const requestKinds = ["region", "writable", "shared_database", "other"] as const;
export type RequestKind = (typeof requestKinds)[number];
type RequestState = "open" | "approved" | "denied";

interface NewRequest {
  kind: RequestKind;
  /** Of a `writable` request: the database. */
  databaseId?: string | undefined;
  /** Of a `region` request: its code. */
  region?: string | undefined;
  message?: string | undefined;
}

export interface OperatorRequest {
  id: string;
  accountId: string;
  /** E-mail address of the account. */
  email: string;
  /** The member or token that sent it. */
  requestedBy: string | null;
  kind: RequestKind;
  databaseId: string | null;
  /** Name of the database. */
  database: string | null;
  region: string | null;
  message: string;
  state: RequestState;
  /** The operator's answer; empty while the request is open, or if no answer was given. */
  answer: string;
  createdAt: Date;
  decidedAt: Date | null;
}

type RequestContext = Pick<Context, "db" | "secrets" | "log" | "actor">;

/**
 * @throws BasetideError `invalid_request` if the request lacks what its kind needs, `not_found` for a database that
 *   the account does not have, `conflict` if no operator is needed, `already_exists` while the same request is open
 */
export async function createRequest(
  db: Db,
  accountId: string,
  request: NewRequest,
  actor?: Actor,
): Promise<OperatorRequest> {
  const { databaseId, region } = await checkSubject(db, accountId, request);
  const message = checkedText(request.message ?? "", "The message");
  if (message === "" && (request.kind === "other" || request.kind === "shared_database")) {
    throw invalid("Describe your request in the message");
  }
  const id = newId("request");
  try {
    await db.begin(async (tx) => {
      await tx`
        insert into requests (id, account_id, requested_by, kind, database_id, region, message)
        values (${id}, ${accountId}, ${actor?.name ?? null}, ${request.kind}, ${databaseId}, ${region}, ${message})`;
      const details = { kind: request.kind, region, database: databaseId };
      await recordChange(tx, actor, { accountId, action: "request.created", subject: id, details });
    });
  } catch (error) {
    if (!isUniqueViolation(error, "requests_open_key")) throw error;
    throw new BasetideError(
      "already_exists",
      "You have already made this request. The operator will answer it",
    );
  }
  return getRequest(db, id);
}

/** The account's requests, or all requests: the open ones first, then the newest. */
export async function listRequests(
  db: Db,
  filter: { accountId?: string; state?: RequestState } = {},
): Promise<OperatorRequest[]> {
  const { accountId, state } = filter;
  return selectRequests(
    db,
    db`${accountId === undefined ? db`true` : db`r.account_id = ${accountId}`}
      and ${state === undefined ? db`true` : db`r.state = ${state}`}`,
  );
}

/** @throws BasetideError `not_found` */
async function getRequest(db: Db, id: string): Promise<OperatorRequest> {
  return rowById("request", id, () => selectRequests(db, db`r.id = ${id}`), `There is no request ${id}`);
}

/**
 * Carries out the request, if a program can, and closes it.
 *
 * @param by the operator's e-mail address, or `cli`
 * @throws BasetideError `conflict` if it is closed, or no cluster of the region accepts databases
 */
export async function approveRequest(
  ctx: RequestContext,
  id: string,
  decision: { by: string; answer?: string | undefined },
): Promise<OperatorRequest> {
  const request = await openRequest(ctx.db, id);
  if (request.kind === "region") await moveAccount(ctx.db, request);
  if (request.kind === "writable") {
    await setDatabaseWritable(ctx, await getDatabase(ctx.db, request.databaseId!), true);
  }
  return closeRequest(ctx, id, "approved", decision);
}

/** @throws BasetideError `conflict` if it is closed */
export async function denyRequest(
  ctx: Pick<Context, "db" | "actor">,
  id: string,
  decision: { by: string; answer?: string | undefined },
): Promise<OperatorRequest> {
  await openRequest(ctx.db, id);
  return closeRequest(ctx, id, "denied", decision);
}

async function checkSubject(
  db: Db,
  accountId: string,
  { kind, databaseId, region }: NewRequest,
): Promise<{ databaseId: string | null; region: string | null }> {
  if (kind === "region") {
    const code = region?.trim().toLowerCase() ?? "";
    if (REGION.test(code)) return { databaseId: null, region: code };
    throw invalid("The region must be a code such as eu-central-1");
  }
  if (kind !== "writable") return { databaseId: null, region: null };
  if (!databaseId || !isId("database", databaseId)) {
    throw invalid("Choose the database that should be writable");
  }
  const database = await getDatabase(db, databaseId, accountId);
  if (database.clusterId === null) {
    throw conflict("You host this database: control write access on your server");
  }
  if (database.isWritable) throw conflict("This database is already writable");
  return { databaseId, region: null };
}

/** Places the account's new databases in the region from now on. */
async function moveAccount(db: Db, { accountId, region }: OperatorRequest): Promise<void> {
  const clusters = await listClusters(db);
  if (!clusters.some((cluster) => cluster.region === region && cluster.state === "active")) {
    throw conflict(`No cluster in ${region} accepts new databases. Add one first, then approve the request`);
  }
  await db`update accounts set region = ${region} where id = ${accountId}`;
}

async function openRequest(db: Db, id: string): Promise<OperatorRequest> {
  const request = await getRequest(db, id);
  if (request.state === "open") return request;
  throw conflict(`The request was already ${request.state}`);
}

async function closeRequest(
  { db, actor }: Pick<Context, "db" | "actor">,
  id: string,
  state: Exclude<RequestState, "open">,
  { by, answer }: { by: string; answer?: string | undefined },
): Promise<OperatorRequest> {
  const said = storedMessage((answer ?? "").trim());
  await db.begin(async (tx) => {
    const [closed] = await tx<{ account_id: string; kind: string }[]>`
      update requests set state = ${state}, answer = ${said}, decided_at = now(), decided_by = ${by}
      where id = ${id} and state = 'open' returning account_id, kind`;
    if (!closed) throw conflict("Another operator has just decided this request");
    const change = { accountId: closed.account_id, subject: id, details: { kind: closed.kind } };
    await recordChange(tx, actor, { ...change, action: `request.${state}` });
  });
  return getRequest(db, id);
}

function selectRequests(db: Db, where: ReturnType<Db>): Promise<OperatorRequest[]> {
  return db<OperatorRequest[]>`
    select r.id, r.account_id as "accountId", a.email, r.requested_by as "requestedBy", r.kind, r.database_id as "databaseId",
      d.name as database, r.region, r.message, r.state, r.answer,
      r.created_at as "createdAt", r.decided_at as "decidedAt"
    from requests as r
      join accounts as a on a.id = r.account_id
      left join databases as d on d.id = r.database_id
    where ${where}
    order by r.state <> 'open', r.created_at desc, r.id`;
}
