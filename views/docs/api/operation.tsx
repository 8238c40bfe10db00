/** One operation in the reference: what it takes, what it answers, its errors, and a call with curl. */
import { CodeBlock } from "../code-block";
import type { ApiDocument, ApiOperation, ApiResponse, JsonSchema } from "../openapi";
import { Described, Fields, parameterFields } from "./parts";
import { fieldsOf, refName, TypeText } from "./schema-text";

export interface ListedOperation {
  method: string;
  path: string;
  operation: ApiOperation;
}

export function Operation({ listed, api }: { listed: ListedOperation; api: ApiDocument }) {
  const { method, path, operation } = listed;
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const query = parameterFields(parameters, "query");
  const body = requestBody?.content["application/json"];
  const fields = body ? fieldsOf(resolved(body.schema, api)) : [];
  return (
    <section class="api-operation">
      <div class="api-text">
        <h3 id={operationId}>
          <a class="anchor" href={`#${operationId}`}>
            {summary}
          </a>
        </h3>
        <p class="api-line">
          <span class={`api-method ${method}`}>{method.toUpperCase()}</span> <code>{path}</code>
        </p>
        {description === undefined ? null : (
          <p>
            <Described text={description} />
          </p>
        )}
        {query.length === 0 ? null : (
          <>
            <h4>Query</h4>
            <Fields fields={query} showsRequired />
          </>
        )}
        {fields.length === 0 ? null : (
          <>
            <h4>Body{requestBody?.required ? "" : ", optional"}</h4>
            <Fields fields={fields} showsRequired />
          </>
        )}
        <h4>Answers</h4>
        <Answers responses={responses} />
      </div>
      <div class="api-example">
        <CodeBlock code={curl(listed, api)} language="sh" />
      </div>
    </section>
  );
}

/** Errors that most operations have, by their status: the page says them once. */
const COMMON: Record<string, string> = {
  "401": "unauthorized",
  "403": "forbidden",
  "404": "not_found",
  "415": "unsupported_media_type",
  "422": "invalid_request",
  "429": "rate_limited",
};

/** Whether it is no other error of that status. */
function isCommon(status: string, { content = {} }: ApiResponse): boolean {
  const codes = Object.values(content).flatMap(({ examples = {} }) => Object.keys(examples));
  return codes.length > 0 && codes.every((code) => code === COMMON[status]);
}

function Answers({ responses }: { responses: Record<string, ApiResponse> }) {
  return (
    <ul class="api-answers">
      {Object.entries(responses)
        .filter(([status, response]) => !isCommon(status, response))
        .map(([status, { description, content = {} }]) => (
          <li key={status}>
            <span class={status < "400" ? "api-status good" : "api-status bad"}>{status}</span>
            <span>
              <Answer description={description} content={content} />
            </span>
          </li>
        ))}
    </ul>
  );
}

/** Of an error its codes, of another answer its object. */
function Answer({ description, content = {} }: ApiResponse) {
  const [[type, { schema, examples }] = [undefined, { schema: {}, examples: undefined }]] =
    Object.entries(content);
  if (examples) {
    return (
      <>
        {description}:{" "}
        {Object.keys(examples).map((code, index) => (
          <span key={code}>
            {index > 0 ? ", " : ""}
            <code>{code}</code>
          </span>
        ))}
      </>
    );
  }
  if (type !== "application/json")
    return <>{type === undefined ? description : `${description} (${type})`}</>;
  return <TypeText schema={schema} />;
}

function resolved(schema: JsonSchema, api: ApiDocument): JsonSchema {
  const form = schema.anyOf?.find(({ type }) => type !== "null") ?? schema;
  const name = refName(form);
  return name === undefined ? form : api.components.schemas[name]!;
}

function curl({ method, path, operation }: ListedOperation, api: ApiDocument): string {
  const example = operation.requestBody?.content["application/json"]?.example;
  const url = `${api.servers[0]!.url}${path.replace(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`)}`;
  const lines = [
    `curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}"${url}"`,
    `-H "Authorization: Bearer $TOKEN"`,
  ];
  if (example !== undefined) {
    lines.push("-H 'content-type: application/json'");
    lines.push(`-d '${JSON.stringify(example, null, 2).replaceAll("'", String.raw`'\''`)}'`);
  }
  return lines.join(" \\\n  ");
}
