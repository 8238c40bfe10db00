/** Notices about the security of an account, which tests cause all the time: each browser of theirs is a new one. */
const SUBJECTS = ["New sign-in to Basetide", "New API token in your account", "Your password was changed"];

export function isNotice({ subject }: { subject: string }): boolean {
  return SUBJECTS.includes(subject);
}
