/** The components of pages. */
export { Ago } from "./ago";
export { BackLink } from "./back-link";
export { Badge, type Tone } from "./badge";
export { Button, ButtonLink } from "./button";
export { Card } from "./card";
export { ChartKey } from "./chart-key";
export { CopyField } from "./copy-field";
export { Confirm, type Confirmation, DialogContent, DialogLink } from "./dialog";
export { Field, SelectField, TextAreaField } from "./field";
export {
  FieldsForm,
  type FormField,
  type FormFields,
  type FormState,
  hasErrors,
  type Typed,
  typedText,
} from "./fields-form";
export { Figure } from "./figure";
export { FormPanel } from "./form-panel";
export { More } from "./more";
export { NewTabLink } from "./new-tab-link";
export { Empty, ErrorNote, Note } from "./notes";
export { PageHead } from "./page-head";
export { Form, Link, type May, PermittedProvider, useMay } from "./permitted";
export { Program, ProgramText } from "./program";
export { SettingsLayout } from "./settings-layout";
export { Table } from "./table";
export { Tabs } from "./tabs";
export { Time } from "./time";
export { Toggle } from "./toggle";
