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
      <rect class="paper" x="1" y="1" width="418" height={height - 2} rx="10" />
      <text class="label" x="18" y="26">
        Name
      </text>
      <rect class="box" x="110" y="11" width="292" height="22" rx="5" />
      <text x="118" y="26">
        Basetide
      </text>
      <text class="label" x="18" y={SCOPES_AT - 20}>
        Scopes
      </text>
      {scopes.map((scope, index) => (
        <g key={scope} transform={`translate(110 ${SCOPES_AT - 35 + index * ROW})`}>
          <rect class="chosen" width="292" height="18" rx="5" />
          <path class="tick" d="M8 9.5l3 3 5.5-6.5" />
          <text class="code" x="24" y="13">
            {scope}
          </text>
        </g>
      ))}
      <text class="hint" x="110" y={accessAt - 38}>
        + Add a scope
      </text>
      <text class="label" x="18" y={accessAt - 4}>
        Access
      </text>
      <rect class="chosen" x="110" y={accessAt - 20} width="292" height="22" rx="5" />
      <text x="118" y={accessAt - 5}>
        Your base, or all of its workspace
      </text>
      <rect class="go" x="110" y={accessAt + 18} width="112" height="28" rx="6" />
      <text class="go-text" x="166" y={accessAt + 36}>
        Create token
      </text>
    </svg>
  );
}
