/**
 * Writes YAML whose texts come from customers.
 *
 * I1. Readers of YAML 1.1 (PyYAML, which dbt uses) and of YAML 1.2 read the same: no text ends its line or its scalar,
 * and none is read as a number, a date, a boolean or a directive.
 */
import { Document, Scalar, visit } from "yaml";
import { visibleText } from "../visible-text";

/** Words that need no quotes in any version. `y` and `n` are booleans in YAML 1.1, as are `yes`, `no`, `on` and `off`. */
const PLAIN = /^(?!(?:y|n|yes|no|on|off|true|false|null)$)[a-z][a-z_]*(?:\[\])?$/;

/**
 * Every quoted text is on one line: yaml 2.9 writes a line of spaces within several as a backslash, which changes the
 * text.
 */
export function toYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value !== "string") return;
      scalar.value = visibleText(scalar.value);
      scalar.type = PLAIN.test(scalar.value as string) ? Scalar.PLAIN : Scalar.QUOTE_DOUBLE;
    },
  });
  return document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER });
}
