/** Fields that several of these pages share: the e-mail address, and a new password. */
import { Field } from "../components";

export function EmailField(props: { value: string; error: string | undefined; autofocus: boolean }) {
  return <Field label="E-mail" name="email" type="email" autocomplete="username" required {...props} />;
}

export function NewPasswordField(props: {
  /** `Password` unless given. */
  label?: string;
  hint: string;
  error: string | undefined;
  autofocus?: boolean;
}) {
  const { label = "Password", ...rest } = props;
  return (
    <Field
      label={label}
      name="password"
      type="password"
      autocomplete="new-password"
      minLength={8}
      required
      {...rest}
    />
  );
}
