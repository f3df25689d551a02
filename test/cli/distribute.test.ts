// `adit admin distribute`: a real process on a real PostgreSQL, with a fake of the Citus extension, which npm
// does not have. The fake has the same names and catalog, and rejects what Citus is documented to reject. It
// shows which calls are made, in which order, and that they are not repeated. It moves no rows: it cannot
// show that Citus accepts the calls, or that Adit's queries run on distributed tables.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { placements } from '../../src/store/citus.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createDatabase, createFolder } from '../support/databases.ts'
import { createCluster } from '../support/postgres.ts'
import { run } from '../support/process.ts'
import { openTestServices } from '../support/server.ts'

const CONTROL = `
comment = 'fake of Citus for the tests of Adit'
default_version = '1'
relocatable = true
`

const FAKE_CITUS = `
create table pg_dist_partition (
  logicalrelid regclass primary key, partkey text, colocationid integer not null, repmodel "char" not null
);
create table calls (number serial, call text, transaction xid8);
create type distribution_type as enum ('hash', 'append');

create function column_to_column_name(table_name regclass, column_var_text text) returns text
  strict language sql as 'select column_var_text';

create function require_new(called regclass) returns void language plpgsql as $$
begin
  if exists (select from pg_dist_partition where logicalrelid = called and colocationid <> 0) then
    raise 'table "%" is already distributed', called;
  end if;
  delete from pg_dist_partition where logicalrelid = called;
end $$;

create function create_reference_table(table_name regclass) returns void language plpgsql as $$
declare referenced regclass;
begin
  insert into calls (call, transaction) values ('reference ' || table_name, pg_current_xact_id());
  perform require_new(table_name);
  for referenced in select confrelid from pg_constraint where contype = 'f' and conrelid = table_name loop
    if not exists (select from pg_dist_partition where logicalrelid = referenced) then
      raise 'referenced table "%" must be a distributed table or a reference table', referenced
        using hint = 'You could use SELECT create_reference_table first.';
    end if;
  end loop;
  insert into pg_dist_partition values (table_name, null, 1, 't');
  -- What refers to it becomes a local table that Citus knows, where the coordinator is one of the machines.
  insert into pg_dist_partition select distinct conrelid::regclass, null, 0, 's'::"char" from pg_constraint
    where contype = 'f' and confrelid = table_name on conflict do nothing;
end $$;

create function create_distributed_table(
  table_name regclass, distribution_column text, distribution_type distribution_type default 'hash',
  colocate_with text default 'default', shard_count integer default null
) returns void language plpgsql as $$
declare next_group integer;
begin
  insert into calls (call, transaction) values (
    'distributed ' || table_name || ' by ' || distribution_column || ' with ' || colocate_with,
    pg_current_xact_id());
  perform require_new(table_name);
  if exists (select from pg_constraint
    where contype in ('p', 'u') and conrelid = table_name and not conkey @> array(
      select attnum from pg_attribute where attrelid = table_name and attname = distribution_column)) then
    raise 'cannot create constraint on "%"', table_name
      using detail = 'Distributed relations cannot have UNIQUE or PRIMARY KEY constraints '
        || 'without the distribution column.';
  end if;
  if colocate_with = 'none' then
    select coalesce(max(colocationid), 1) + 1 into next_group from pg_dist_partition;
  else
    select colocationid into strict next_group from pg_dist_partition
    where logicalrelid = colocate_with::regclass;
  end if;
  insert into pg_dist_partition values (table_name, distribution_column, next_group, 's');
end $$;
`

interface Line {
  table: string
  placement: string
  changed: boolean
}

async function openClient(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  atEnd(t, () => client.end())
  return client
}

/** A separate PostgreSQL with the fake extension in its copied files. */
async function createFakeCitus(t: Test) {
  const cluster = await createCluster(['fsync=off'])
  atEnd(t, () => cluster.remove())
  await cluster.start()
  const url = `${cluster.url}/postgres`
  const client = await openClient(t, url)
  const { rows } = await client.query("select setting from pg_config where name = 'SHAREDIR'")
  const folder = join(rows[0].setting, 'extension')
  writeFileSync(join(folder, 'citus.control'), CONTROL)
  writeFileSync(join(folder, 'citus--1.sql'), FAKE_CITUS)
  const env = { ADIT_DATABASE_URL: url }
  const distribute = async (): Promise<Line[]> => {
    const { code, stdout, stderr } = await run(t, ['admin', 'distribute', '--json'], env)
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }
  const calls = async () => (await client.query('select * from calls order by number')).rows
  return { client, env, distribute, calls }
}

test('every table of the schema is placed, after the tables that it references, and no other', async (t) => {
  const { services, database } = await openTestServices(t, 'postgres')
  await services.store.close()
  const client = await openClient(t, database)
  const { rows: tables } = await client.query("select tablename from pg_tables where schemaname = 'public'")
  const listed = Object.keys(placements)
  assert.deepEqual(listed.toSorted(), tables.map(({ tablename }) => tablename).sort())
  const { rows: references } = await client.query(
    `select conrelid::regclass::text as referring, confrelid::regclass::text as referred
     from pg_constraint where contype = 'f'`,
  )
  assert.ok(references.length > 5)
  for (const { referring, referred } of references)
    assert.ok(listed.indexOf(referred) < listed.indexOf(referring), `${referred} before ${referring}`)
})

test('usage is sharded by workspace, other tables are reference tables, idempotently (fake)', async (t) => {
  const { client, env, distribute, calls } = await createFakeCitus(t)
  await client.query('create extension citus')
  const first = await distribute()
  assert.deepEqual(
    first,
    Object.entries(placements).map(([table, placement]) => ({ table, placement, changed: true })),
  )
  const made = await calls()
  assert.deepEqual(made.map(({ call }) => call).slice(-3), [
    'distributed usage_counters by workspace_id with none',
    'distributed usage_minutes by workspace_id with usage_counters',
    'distributed usage_days by workspace_id with usage_counters',
  ])
  assert.equal(new Set(made.map(({ transaction }) => transaction)).size, made.length, 'one transaction each')
  const kinds = await client.query(
    'select repmodel, colocationid, count(*)::integer from pg_dist_partition group by 1, 2 order by 3',
  )
  assert.deepEqual(kinds.rows, [
    { repmodel: 's', colocationid: 2, count: 3 },
    { repmodel: 't', colocationid: 1, count: first.length - 3 },
  ])

  const again = await distribute()
  assert.ok(again.every(({ changed }) => !changed))
  assert.equal((await calls()).length, made.length)
  // As after a migration that creates them. Citus records a table that references a reference table.
  await client.query("delete from pg_dist_partition where logicalrelid = 'edges'::regclass")
  await client.query(
    "update pg_dist_partition set repmodel = 's', colocationid = 0 where logicalrelid = 'links'::regclass",
  )
  const later = await distribute()
  assert.deepEqual(
    later.filter(({ changed }) => changed).map(({ table }) => table),
    ['edges', 'links'],
  )
  const { stdout } = await run(t, ['admin', 'distribute'], env)
  assert.match(stdout, /^TABLE +PLACEMENT +CHANGED\n/)
  assert.match(stdout, /^usage_days +sharded by workspace +no$/m)
  assert.match(stdout, /^workspaces +reference table +no$/m)
})

test('an error of the extension is reported with its hint, and earlier tables stay (fake)', async (t) => {
  const { client, env, distribute } = await createFakeCitus(t)
  const rejected = async () => {
    const { code, stdout, stderr } = await run(t, ['admin', 'distribute'], env)
    assert.deepEqual([code, stdout], [1, ''])
    return stderr
  }
  assert.match(await rejected(), /Run "create extension citus" as a superuser/)
  await client.query('create extension citus')
  await client.query('alter table usage_minutes add unique (minute)')
  const stderr = await rejected()
  assert.match(stderr, /Could not distribute usage_minutes: cannot create constraint .*distribution column\./)
  await client.query('alter table usage_minutes drop constraint usage_minutes_minute_key')
  const left = await distribute()
  assert.deepEqual(
    left.filter(({ changed }) => changed).map(({ table }) => table),
    ['usage_minutes', 'usage_days'],
  )
  await client.query(
    "update pg_dist_partition set partkey = 'day' where logicalrelid = 'usage_days'::regclass",
  )
  assert.match(
    await rejected(),
    /usage_days is already placed differently \(distributed by day\)\. Undo that/,
  )
})

test('without the extension, and on SQLite, the error is one line', async (t) => {
  const postgres = await createDatabase(t, 'postgres')
  const file = join(createFolder(t), 'data', 'adit.db')
  for (const [database, message] of [
    [
      postgres,
      /^adit: The citus extension is not available on this PostgreSQL server\. Install it on every machine\.\n$/,
    ],
    [`sqlite:${file}`, /^adit: SQLite cannot be distributed\. Set ADIT_DATABASE_URL to a PostgreSQL .*\.\n$/],
  ] as const) {
    const { code, stdout, stderr } = await run(t, ['admin', 'distribute'], { ADIT_DATABASE_URL: database })
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, message)
  }
  assert.ok(!existsSync(file), 'a database was created')
})
