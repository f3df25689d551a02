// Checks synchronous replication of PostgreSQL: without a connected standby commits hang.
import type { Config } from '../config/server.ts'
import type { Standbys } from '../store/maintenance/diagnostics.ts'
import { type Finding, ok, problem, warning } from './check.ts'

export function replicationFindings(
  { names, connected, synchronous, isVisible }: Standbys,
  fencing: Config['fencing'],
): Finding[] {
  const setting = `synchronous_standby_names = '${names}'`
  if (names === '')
    return fencing === 'strict'
      ? [
          warning(
            'ADIT_FENCING=strict has no effect, because synchronous_standby_names is empty.',
            'Replicate synchronously (docs/operations/failover.md), or remove ADIT_FENCING.',
          ),
        ]
      : []
  const findings: Finding[] = []
  if (connected === 0 || (isVisible && synchronous === 0))
    findings.push(
      problem(
        `No synchronous standby is connected (${setting}): commits hang, and writes get 503.`,
        'Start a standby and check its primary_conninfo and application_name. If this server was promoted and ' +
          'has none yet, set synchronous_standby_names to the standbys that it will have, or to empty until then.',
      ),
    )
  else
    findings.push(
      ok(
        isVisible
          ? `Synchronous standbys that are connected: ${synchronous} (${setting})`
          : `Standbys that are connected: ${connected} (${setting}); \`grant pg_monitor to <role>\` shows which are synchronous`,
      ),
    )
  if (fencing === 'operator')
    findings.push(
      warning(
        'Nodes cannot tell a dead standby from a promoted one: at an old primary they accept revoked keys.',
        'Let your failover tool fence the old primary, or set ADIT_FENCING=strict (docs/operations/failover.md).',
      ),
    )
  return findings
}
