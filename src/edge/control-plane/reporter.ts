// Reports the tunnels of this edge to the control plane, and does what it decides about them.
import { NameClaims } from '../admission/name-claims.ts'
import type { EdgeCore } from '../core.ts'
import type { EdgeOptions } from '../options.ts'
import { tellOtherEdges } from '../tunnels/other-edges.ts'

/** Undefined without a control plane. */
export function startNameClaims(
  { startReporter }: Pick<EdgeOptions, 'startReporter'>,
  { registry, verifier, traffic }: Pick<EdgeCore, 'registry' | 'verifier' | 'traffic'>,
): NameClaims | undefined {
  let claims: NameClaims | undefined
  const reporter = startReporter?.({
    verifier,
    onClose({ id, session, reason, message }) {
      if (reason !== 'moved') return registry.closeForGood(id, session, { reason, message })
      // A client that has moved is open at another edge.
      const client = registry.clientById(id)
      if (client) registry.close(client, reason)
    },
    onAccessRules({ workspace, name, access, ...count }) {
      registry.setNameRules(workspace, name, access)
      registry.setCount(workspace, name, count)
      claims?.setRules(workspace, name, access)
    },
    onOtherEdges: (urls) => tellOtherEdges(registry.tunnels(), urls),
    onLeaseExpired() {
      traffic.abortAll()
      for (const client of registry.clients()) client.abortRequests()
    },
  })
  claims = reporter && new NameClaims(reporter)
  return claims
}
