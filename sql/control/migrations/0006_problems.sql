-- What keeps a base from being current, for its indicator.

alter table bases
  add column problems jsonb not null default '[]',
  -- When a first sync or a rebuild last got further than ever before.
  add column progress_at timestamptz;

comment on column bases.problems is 'what keeps the replica from equaling the source, as the base''s worker finds it: [{"kind", "tableId", "name", "message", "since", "nextAt"}], times in ms since 1970';

-- failing: the feed cannot be read at the moment, and the base is swept meanwhile.
alter table live_feeds
  drop constraint live_feeds_state_check,
  add constraint live_feeds_state_check check (state in ('making', 'on', 'refused', 'failing')),
  -- Since when there is no feed although live mode is on, and when the source is asked again.
  add column off_since timestamptz,
  add column retry_at timestamptz;
