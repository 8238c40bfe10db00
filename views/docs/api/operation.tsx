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

interface OperationProps {
  listed: ListedOperation;
  api: ApiDocument;
  /** What every operation may answer: the page says it once. */
  common: Record<string, ApiResponse>;
}

export function Operation({ listed, api, common }: OperationProps) {
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
        <Answers responses={without(common, responses)} />
      </div>
      <div class="api-example">
        <CodeBlock code={curl(listed, api)} language="sh" />
      </div>
    </section>
  );
}

/** The answers that all of the operations have, with the same texts. */
export function commonAnswers(operations: ListedOperation[]): Record<string, ApiResponse> {
  const [first, ...rest] = operations.map(({ operation }) => operation.responses);
  const isCommon = ([status, response]: [string, ApiResponse]) =>
    rest.every((responses) => isSame(responses[status], response));
  return Object.fromEntries(Object.entries(first ?? {}).filter(isCommon));
}

function without(common: Record<string, ApiResponse>, responses: Record<string, ApiResponse>) {
  return Object.fromEntries(
    Object.entries(responses).filter(([status, response]) => !isSame(common[status], response)),
  );
}

function isSame(one: ApiResponse | undefined, other: ApiResponse): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function Answers({ responses }: { responses: Record<string, ApiResponse> }) {
  return (
    <ul class="api-answers">
      {Object.entries(responses).map(([status, { description, content = {} }]) => (
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
