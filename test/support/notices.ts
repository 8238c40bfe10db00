/** Notices about the security of an account. Tests cause them all the time, because each of their browsers is new. */
const SUBJECTS = ["New sign-in to Basetide", "New API token in your account", "Your password was changed"];

export function isNotice({ subject }: { subject: string }): boolean {
  return SUBJECTS.includes(subject);
}
