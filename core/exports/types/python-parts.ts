/** Parts that the outputs in Python share. They run on Python 3.8 and later. */
import type { RowColumn, TypedRelation, TypeModel } from "./model";
import { assignIdentifiers, unicodeAttribute } from "./names";
import { docstring, lineComments, quoted } from "./text";

/** Python's keywords, the built-in types that annotations use, and the modules that the files import. */
const RESERVED =
  `and as assert async await break class continue def del elif else except finally for from global if
  import in is lambda nonlocal not or pass raise return try while with bool str int float list dict set tuple
  datetime decimal typing pydantic sa orm`.split(/\s+/);

/** The first two lines are fixed: Python would take an encoding from a comment there. */
export function pythonHead({ title }: TypeModel, imports: string): string {
  return `# Generated: do not edit.
# Generate it again after changes of the tables in Airtable.
${docstring(title, "")}
${imports}
`;
}

/** `ProjectsId`, a type of its own for type checkers. */
export function pythonIds({ tables }: TypeModel): string {
  return tables
    .map(
      ({ id, typeName, sourceName }) =>
        `${lineComments("#:", `The id of a record of ${sourceName} (${id})`)}${typeName}Id = typing.NewType(${quoted(`${typeName}Id`)}, str)\n`,
    )
    .join("");
}

/** Returns the attribute of each column, by field id. */
export function attributesOf({ row }: TypedRelation, reserved: Iterable<string>): Map<string, string> {
  return assignIdentifiers(
    row.map(({ fieldId, name }) => ({ id: fieldId, name })),
    { spell: unicodeAttribute, fallback: "field", reserved: new Set([...RESERVED, ...reserved]) },
  );
}

/** The annotation of a column as psycopg returns it. */
export function annotation(column: RowColumn): string {
  const one = elementType(column);
  const element = column.hasEmptyElements ? `typing.Optional[${one}]` : one;
  const type = column.isList ? `typing.List[${element}]` : element;
  return column.isNullable ? `typing.Optional[${type}]` : type;
}

function elementType({ kind, linked, choices }: RowColumn): string {
  if (linked) return `${linked.typeName}Id`;
  // The plain text stands for choices that were added later.
  if (choices) return `typing.Union[typing.Literal[${choices.map(quoted).join(", ")}], str]`;
  return {
    text: "str",
    numeric: "decimal.Decimal",
    integer: "int",
    bigint: "int",
    bool: "bool",
    date: "datetime.date",
    timestamp: "datetime.datetime",
  }[kind];
}
