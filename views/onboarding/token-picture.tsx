/** A drawing of the form that creates a token: which scopes to add, where to give access, and which button. */

const ROW = 22;
const SCOPES_AT = 72;

export function TokenPicture({ scopes }: { scopes: string[] }) {
  const accessAt = SCOPES_AT + scopes.length * ROW + 26;
  const height = accessAt + 70;
  return (
    <svg
      class="token-picture"
      viewBox={`0 0 420 ${height}`}
      role="img"
      aria-label={`Airtable's form for a token: a name, the scopes ${scopes.join(", ")}, under Access the base or its workspace, and the button Create token.`}
    >
      <rect fill="var(--surface)" stroke="var(--line)" x="1" y="1" width="418" height={height - 2} rx="10" />
      <text fill="var(--muted)" x="18" y="26">
        Name
      </text>
      <rect fill="none" stroke="var(--line-strong)" x="110" y="11" width="292" height="22" rx="5" />
      <text x="118" y="26">
        Basetide
      </text>
      <text fill="var(--muted)" x="18" y={SCOPES_AT - 20}>
        Scopes
      </text>
      {scopes.map((scope, index) => (
        <g key={scope} transform={`translate(110 ${SCOPES_AT - 35 + index * ROW})`}>
          <rect fill="var(--accent-soft)" width="292" height="18" rx="5" />
          <path fill="none" stroke="var(--accent)" stroke-width="1.75" d="M8 9.5l3 3 5.5-6.5" />
          <text font-family="var(--mono)" x="24" y="13">
            {scope}
          </text>
        </g>
      ))}
      <text fill="var(--muted)" x="110" y={accessAt - 38}>
        + Add a scope
      </text>
      <text fill="var(--muted)" x="18" y={accessAt - 4}>
        Access
      </text>
      <rect fill="var(--accent-soft)" x="110" y={accessAt - 20} width="292" height="22" rx="5" />
      <text x="118" y={accessAt - 5}>
        Your base, or all of its workspace
      </text>
      <rect fill="var(--accent)" x="110" y={accessAt + 18} width="112" height="28" rx="6" />
      <text fill="var(--on-accent)" text-anchor="middle" x="166" y={accessAt + 36}>
        Create token
      </text>
    </svg>
  );
}
