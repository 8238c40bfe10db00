/**
 * Comments on records.
 */
import { absent, invalidRequest, notPermitted } from "./errors";
import type { Comment, SandboxBase, SandboxRow, SandboxTable } from "./model";
import { type ApiAnswer, type ApiRequest, jsonBody, okAnswer } from "./request";
import type { Sandbox } from "./sandbox";

const MAX_PER_PAGE = 100;

/** Answers `/v0/{base}/{table}/{record}/comments[/{comment}]`. The caller has checked the right to do so. */
export function commentCall(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  commentId: string | undefined,
  request: ApiRequest,
): ApiAnswer {
  if (commentId === undefined) {
    if (request.method === "GET") return listComments(row, request);
    return createComment(sandbox, base, table, row, request);
  }
  const comment = row.comments.find((one) => one.id === commentId);
  if (!comment) throw absent();
  if (comment.author.id !== request.key.user.id) throw notPermitted();
  if (request.method === "DELETE") {
    put(
      sandbox,
      base,
      table,
      row,
      request,
      row.comments.filter((one) => one !== comment),
    );
    return okAnswer({ id: comment.id, deleted: true });
  }
  const changed = {
    ...comment,
    text: textOf(request),
    lastUpdatedTime: new Date(sandbox.store.now()).toISOString(),
  };
  put(
    sandbox,
    base,
    table,
    row,
    request,
    row.comments.map((one) => (one === comment ? changed : one)),
  );
  return okAnswer(changed);
}

/** Newest first; `offset` is null on the last page. */
function listComments(row: SandboxRow, { query }: ApiRequest): ApiAnswer {
  const given = Object.fromEntries(query);
  const pageSize = given.pageSize === undefined ? MAX_PER_PAGE : Number(given.pageSize);
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MAX_PER_PAGE) throw invalidRequest();
  const newestFirst = [...row.comments].reverse();
  const start = given.offset ? newestFirst.findIndex((comment) => comment.id === given.offset) : 0;
  if (start < 0) throw invalidRequest();
  const comments = newestFirst.slice(start, start + pageSize);
  return okAnswer({ comments, offset: newestFirst[start + pageSize]?.id ?? null });
}

function createComment(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  request: ApiRequest,
): ApiAnswer {
  const { parentCommentId } = jsonBody(request);
  if (parentCommentId !== undefined && !row.comments.some((one) => one.id === parentCommentId))
    throw absent();
  const comment: Comment = {
    id: sandbox.store.random.id("com"),
    author: request.key.user,
    text: textOf(request),
    createdTime: new Date(sandbox.store.now()).toISOString(),
    lastUpdatedTime: null,
  };
  if (typeof parentCommentId === "string") comment.parentCommentId = parentCommentId;
  put(sandbox, base, table, row, request, [...row.comments, comment]);
  return okAnswer(comment);
}

function put(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  request: ApiRequest,
  comments: Comment[],
): void {
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) =>
    transaction.setComments(table, row, comments),
  );
}

function textOf(request: ApiRequest): string {
  const { text } = jsonBody(request);
  if (typeof text !== "string" || text === "") throw invalidRequest();
  return text;
}
