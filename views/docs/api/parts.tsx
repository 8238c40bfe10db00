/** Parts of the reference: fields of an object, and descriptions with names in code. */
import type { ApiParameter } from "../openapi";
import { type ApiField, limitsOf, TypeText } from "./schema-text";

export function Fields({ fields, showsRequired }: { fields: ApiField[]; showsRequired: boolean }) {
  return (
    <dl class="api-fields">
      {fields.map(({ name, schema, isRequired }) => (
        <div key={name}>
          <dt>
            <code>{name}</code>
            <span class="api-type">
              <TypeText schema={schema} />
            </span>
            {showsRequired && isRequired ? <span class="api-required">required</span> : null}
            {limitsOf(schema) ? <span class="api-limits">{limitsOf(schema)}</span> : null}
          </dt>
          <dd>
            <Described text={schema.description} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function parameterFields(parameters: ApiParameter[], where: ApiParameter["in"]): ApiField[] {
  return parameters
    .filter((parameter) => parameter.in === where)
    .map(({ name, required, description, schema }) => ({
      name,
      isRequired: required,
      schema: description === undefined ? schema : { ...schema, description },
    }));
}

/** Names between back quotes are shown as code. */
export function Described({ text = "" }: { text?: string | undefined }) {
  return (
    <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}
