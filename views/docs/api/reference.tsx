/** The page of the reference: operations by tag, then the objects that they answer. */
import { CodeBlock } from "../code-block";
import { DocsFrame } from "../frame";
import type { ApiDocument } from "../openapi";
import type { DocGroup, DocHeading } from "../types";
import { exampleOfObject, objectsOf, operationsByTag, tagAnchor } from "./listing";
import { Operation } from "./operation";
import { Described, Fields } from "./parts";
import { fieldsOf, objectAnchor } from "./schema-text";

export function ApiReference({ api, groups }: { api: ApiDocument; groups: DocGroup[] }) {
  const byTag = operationsByTag(api);
  const headings: DocHeading[] = byTag.flatMap(({ tag, operations }) => [
    { level: 2, text: tag, anchor: tagAnchor(tag) },
    ...operations.map(({ operation }) => ({
      level: 3,
      text: operation.summary,
      anchor: operation.operationId,
    })),
  ]);
  headings.push({ level: 2, text: "Objects", anchor: "objects" });
  return (
    <DocsFrame groups={groups} current="/docs/api" headings={headings}>
      <article class="prose api">
        <p class="docs-eyebrow">Version {api.info.version}</p>
        <h1>API reference</h1>
        <p>
          <Described text={api.info.description} /> Create a token in the console under API. The same
          reference as a file: <a href="/openapi">OpenAPI 3.1</a>, for generators of clients. Errors have a
          code: <a href="/docs/errors">causes and remedies</a>.
        </p>
        <p>
          Besides what is listed with it, an operation answers 401 (<code>unauthorized</code>) without a valid
          token, 403 (<code>forbidden</code>) if the token's scopes or the role of its creator do not allow
          it, 404 (<code>not_found</code>) for an id that does not exist or belongs to another account, 415 (
          <code>unsupported_media_type</code>) for a body that is not JSON, 422 (<code>invalid_request</code>)
          for a request that cannot be used, and 429 (<code>rate_limited</code>) after too many calls.
        </p>
        <CodeBlock
          language="sh"
          code={`TOKEN=…   # from the console: API\ncurl "${api.servers[0]!.url}/api/v1/bases" -H "Authorization: Bearer $TOKEN"`}
        />
        {byTag.map(({ tag, operations }) => (
          <section key={tag}>
            <h2 id={tagAnchor(tag)}>
              <a class="anchor" href={`#${tagAnchor(tag)}`}>
                {tag}
              </a>
            </h2>
            {operations.map((listed) => (
              <Operation key={listed.operation.operationId} listed={listed} api={api} />
            ))}
          </section>
        ))}
        <h2 id="objects">
          <a class="anchor" href="#objects">
            Objects
          </a>
        </h2>
        {objectsOf(api).map(([name, schema]) => (
          <section key={name} class="api-object">
            <h3 id={objectAnchor(name)}>
              <a class="anchor" href={`#${objectAnchor(name)}`}>
                {name}
              </a>
            </h3>
            {schema.description === undefined ? null : (
              <p>
                <Described text={schema.description} />
              </p>
            )}
            <ObjectBody name={name} api={api} />
          </section>
        ))}
      </article>
    </DocsFrame>
  );
}

function ObjectBody({ name, api }: { name: string; api: ApiDocument }) {
  const schema = api.components.schemas[name]!;
  const example = exampleOfObject(name, api);
  const fields = fieldsOf(schema);
  return (
    <>
      {fields.length > 0 ? (
        <Fields fields={fields} showsRequired={false} />
      ) : (
        <Values api={api} name={name} />
      )}
      {fields.length > 0 && example !== undefined ? (
        <details>
          <summary>Example</summary>
          <CodeBlock language="json" code={JSON.stringify(example, null, 2)} />
        </details>
      ) : null}
    </>
  );
}

/** Of an enumeration its values, of a choice its forms. */
function Values({ name, api }: { name: string; api: ApiDocument }) {
  const { enum: values, anyOf = [] } = api.components.schemas[name]!;
  if (values) {
    return (
      <p>
        {values.map((value, index) => (
          <span key={index}>
            {index > 0 ? ", " : ""}
            <code>{String(value)}</code>
          </span>
        ))}
      </p>
    );
  }
  return (
    <>
      {anyOf.map((form, index) => (
        <section key={index}>
          <h4>{form.title ?? `Form ${index + 1}`}</h4>
          <Fields fields={fieldsOf(form)} showsRequired />
        </section>
      ))}
    </>
  );
}
