// Nodes that create alerts, and edges that do not report.
import assert from 'node:assert/strict'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { KeyRejections } from '../../../src/server/domain/keys/rejections.ts'
import { runAlerts } from '../../../src/server/domain/maintenance/job.ts'
import type { NoticeEmail } from '../../../src/server/domain/notices/mails.ts'
import type { PortUse } from '../../../src/server/domain/tunnels/operator-ports.ts'
import type { TestServer } from '../api/server.ts'
import { createRun } from '../databases/maintenance-run.ts'
import { setRows } from '../databases/rows.ts'

export const OPERATOR = 'ops@example.com'
/** The server sends nothing itself within the time of a test. */
export const alertEnv = { ADIT_SMTP_URL: 'smtp://127.0.0.1:1', ADIT_MAIL_FROM: 'adit@example.com' }

interface AlertNodeOptions {
  clock?: () => number
  proceed?: () => Promise<boolean>
  databaseUpForMs?: () => number
}

/** A node, whose emails arrive in the list. */
export const alertNode = ({ services }: TestServer, emails: NoticeEmail[], given: AlertNodeOptions = {}) => {
  const { clock = Date.now, databaseUpForMs = () => Number.POSITIVE_INFINITY, ...run } = given
  const rejections = new KeyRejections(clock)
  const silent: string[] = []
  const scarce: PortUse[] = []
  return {
    rejections,
    silent,
    scarce,
    run: () =>
      runAlerts(
        { ...createRun(services), ...run },
        {
          rejections,
          databaseUpForMs,
          events: {
            onSilentEdge: ({ name }) => silent.push(name),
            onScarcePorts: (use) => scarce.push(use),
          },
          mail: {
            publicUrl: () => 'https://adit.example.com',
            operator: OPERATOR,
            onFailure: (error) => assert.fail(String(error)),
            send: async (email) => {
              emails.push(email)
            },
          },
        },
      ),
  }
}

/** As if the edge had not reported for so long. */
export const silenceEdge = ({ services }: TestServer, edgeId: string, minutes: number) =>
  setRows(services, 'edge_sessions', { last_sync_at: Date.now() - minutes * MINUTE_MS }, { edge_id: edgeId })
