// Checks version and settings of PostgreSQL.
import { CONNECTIONS_PER_NODE, type PostgresFacts } from '../store/maintenance/diagnostics.ts'
import { type Finding, problem, warning } from './check.ts'

/** The oldest version that the tests run on. */
const POSTGRES_MIN = 15

export function postgresFindings(facts: PostgresFacts, workers: number): Finding[] {
  const findings: Finding[] = []
  const add = (isWrong: boolean, finding: Finding) => isWrong && findings.push(finding)
  add(
    facts.versionNumber < POSTGRES_MIN * 10_000,
    warning(`PostgreSQL ${facts.version} is not tested.`, `Upgrade to PostgreSQL ${POSTGRES_MIN} or later.`),
  )
  add(
    facts.fsync === 'off',
    problem(
      'fsync is off: a crash of the server can damage the database and undo revocations.',
      'Set fsync = on in postgresql.conf and reload the server.',
    ),
  )
  add(
    facts.fullPageWrites === 'off',
    warning(
      'full_page_writes is off: a crash of the server can damage the database, unless its file system ' +
        'prevents torn pages.',
      'Set full_page_writes = on in postgresql.conf and reload the server.',
    ),
  )
  add(
    facts.autovacuum === 'off',
    warning(
      'autovacuum is off: tables grow and queries get slower.',
      'Set autovacuum = on in postgresql.conf and reload the server.',
    ),
  )
  add(
    facts.encoding !== null && facts.encoding !== 'UTF8',
    problem(
      `The encoding of the database is ${facts.encoding}: names and labels with other characters fail.`,
      'Create a database with encoding UTF8 and restore a dump into it.',
    ),
  )
  add(
    !facts.canCreateTables,
    warning(
      'The user may not create tables, so the next upgrade cannot migrate the schema.',
      'Run `grant create on schema public to <role>` as the owner of the database, or `adit admin migrate` as ' +
        'the owner of the tables before each upgrade.',
    ),
  )
  add(
    facts.statementTimeout === 0,
    warning(
      'The timeouts of Adit do not apply, because a pooler ignores them: a statement can block others forever.',
      'Set them for the role, as docs/operations/postgres.md says for PgBouncer.',
    ),
  )
  const { maxConnections: max, reservedConnections: reserved } = facts
  const free = max === null ? Number.POSITIVE_INFINITY : max - (reserved ?? 0) - facts.usedConnections
  const needed = CONNECTIONS_PER_NODE * workers
  add(
    free < needed,
    warning(
      `${free} of ${max} connections are free, and this configuration uses up to ${needed}.`,
      'Raise max_connections in postgresql.conf, or use PgBouncer (docs/operations/postgres.md).',
    ),
  )
  return findings
}
