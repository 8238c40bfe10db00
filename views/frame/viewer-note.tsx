/** Tells a viewer why pages have no forms. */
export function ViewerNote({ account }: { account: string }) {
  return (
    <p class="viewer-note muted small">
      You are a viewer of this account: you can see it, but not change it. Ask its owner, <bdi>{account}</bdi>
      , for the role editor.
    </p>
  );
}
