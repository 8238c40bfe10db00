-- Up Migration

-- Bases whose workers died while they held them: one that may be the reason is synced in a process of its own.
create table base_crashes (
  base_id text not null,
  -- Workers in a row that ended without giving the base back, but for those that had put it into a process of its own.
  crashes integer not null default 0,
  -- Jobs that failed before then are counted already.
  counted_until timestamptz not null default '-infinity',
  -- Since when it is a suspect, or since the last process of its own that died; null: it is synced like any other base.
  suspected_at timestamptz,
  -- How many bases were in that process: when it was this one alone, the blame is exact.
  company integer,
  -- Processes in a row that died of this base alone; the base rests until then.
  quarantines integer not null default 0,
  quarantined_until timestamptz,
  constraint base_crashes_pkey primary key (base_id),
  constraint base_crashes_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

-- Tasks that are done once (a deletion, the end of a move) and are counted before they begin: what is left of them was
-- begun by processes that died, or failed and is put off.
create table task_attempts (
  task text not null,
  subject text not null,
  -- In a row, none of which came to an end, good or bad.
  unended integer not null default 0,
  failures integer not null default 0,
  due_at timestamptz not null default now(),
  tried_at timestamptz not null default now(),
  constraint task_attempts_pkey primary key (task, subject)
);

-- Claims in a row that were neither settled nor put off: their processes died.
alter table repairs add column unsettled integer not null default 0;

create index repairs_unsettled_idx on repairs (base_id) where unsettled > 0;

-- Down Migration

alter table repairs drop column unsettled;
drop table task_attempts;
drop table base_crashes;
