// Applies changes of the control plane: revoked keys, archived workspaces and quotas.
import type { Verifier } from '../../edge-sdk/index.ts'
import { hashSecret } from '../../lib/credentials/secret.ts'
import type { NameClaims } from '../admission/name-claims.ts'
import type { Forwarding } from '../forwarding.ts'
import type { VerifierCallbacks } from '../options.ts'
import type { Traffic } from '../traffic.ts'
import type { Registry } from '../tunnels/registry.ts'
import { reverify } from './reverification.ts'

/** Requests in progress may take this long after a quota is reached. */
const ABORT_DELAY_MS = 1_000

/** The parts of an edge to which changes apply. */
export interface ChangedParts {
  readonly registry: Registry
  readonly traffic: Traffic
  readonly forwarding: Forwarding
  readonly verifier: Verifier
  /** Undefined without a control plane, and before the edge listens. */
  names: NameClaims | undefined
}

/** `parts` may be called only after the verifier has been started. */
export function applyChanges(parts: () => ChangedParts, isWorker: boolean): VerifierCallbacks {
  async function endKey(keyId: string, reason: 'revoked' | 'expired', keyHash: string): Promise<void> {
    const { registry, names, traffic, forwarding } = parts()
    registry.closeByKey(keyId, reason)
    names?.removeKeys((key) => key.keyId === keyId)
    traffic.abortResponses((client) => client.keyHash === keyHash)
    await forwarding.peers?.end({ keyHash })
  }

  function abortIfReached(workspace: string): void {
    const { registry, verifier } = parts()
    if (verifier.quotaReachedUntil(workspace) === undefined) return
    for (const client of registry.clientsInWorkspace(workspace)) client.abortRequests()
  }

  return {
    onRevoked: endKey,
    async onArchived(workspace) {
      const { registry, names, traffic, forwarding } = parts()
      registry.closeByWorkspace(workspace, 'archived')
      names?.removeKeys((key) => key.workspace.slug === workspace)
      traffic.abortResponses((client) => client.workspace === workspace)
      await forwarding.peers?.end({ workspace })
    },
    onQuota(workspace, { level }) {
      const { registry, verifier, forwarding } = parts()
      const until = verifier.quotaReachedUntil(workspace)
      for (const client of registry.clientsInWorkspace(workspace)) client.setQuotaReached(until)
      forwarding.onQuotaChanged(workspace)
      if (level === 'reached') setTimeout(abortIfReached, ABORT_DELAY_MS, workspace).unref()
    },
    onReset() {
      const { registry, names, verifier } = parts()
      names?.removeClosed()
      // The primary verifies the keys of all workers.
      if (isWorker) return
      return reverify({
        registry,
        verify: (key) => verifier.verify(key),
        onInvalid: ({ id, secret }) => endKey(id, 'revoked', hashSecret(secret)),
      })
    },
    onTunnelsChanged: () => parts().names?.syncNow(),
  }
}
