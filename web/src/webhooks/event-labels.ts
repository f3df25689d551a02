// The types of events, as options of a form.
import type { Input } from '../api.ts'

export type EventType = NonNullable<Input<'webhooks.create'>['events']>[number]

export const eventLabels: Record<Exclude<EventType, 'webhook.test'>, string> = {
  'key.created': 'API key created',
  'key.rotated': 'API key rotated',
  'key.revoked': 'API key revoked',
  'key.expired': 'API key expired',
  'key.expiring': 'API key expires soon',
  'key.rejected': 'High traffic from an inactive API key',
  'member.invited': 'Member invited',
  'member.joined': 'Member joined',
  'member.updated': 'Role changed',
  'member.removed': 'Member removed or left',
  'workspace.updated': 'Workspace settings changed',
  'quota.near': 'Quota 80% used',
  'quota.reached': 'Quota reached',
  'edge.silent': 'Edge not reporting',
  'tunnel.opened': 'Tunnel opened',
  'tunnel.closed': 'Tunnel closed',
  'tunnel.limited': 'Tunnel events skipped',
}
