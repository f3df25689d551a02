// The payload of a notification: the changes that were just committed, which saves each node a read. A node
// polls instead if the payload is empty because it would be too long, or if an earlier change is missing.
import type { LinkedChange } from '../store/change-log/entries.ts'

/** The payload after locations of tunnels have changed, which the change log does not have. */
export const LOCATIONS_CHANGED = 'locations'

/** PostgreSQL accepts 7,999 bytes. */
const BYTES_MAX = 7_500

export function encodeAnnouncement(changes: readonly LinkedChange[]): string {
  const entries = changes
    .toSorted((a, b) => a.sequence - b.sequence)
    .map((change) => [
      change.sequence,
      change.checksum,
      change.previousChecksum,
      change.kind,
      change.subjectId,
      change.hash,
      change.expiresAt,
    ])
  const text = JSON.stringify(entries)
  return Buffer.byteLength(text) > BYTES_MAX ? '' : text
}

/** Undefined if the notification has no changes that this version understands. */
export function parseAnnouncement(text: string): LinkedChange[] | undefined {
  let entries: unknown
  try {
    entries = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!Array.isArray(entries)) return undefined
  const changes = entries.map(toChange)
  return changes.every((change) => change !== undefined) ? changes : undefined
}

const KINDS: readonly unknown[] = [
  'key',
  'key-expiry',
  'edge',
  'workspace',
  'workspace-archived',
  'workspace-restored',
  'workspace-quota',
  'workspace-group',
  'tunnels',
] satisfies LinkedChange['kind'][]

function toChange(entry: unknown): LinkedChange | undefined {
  if (!Array.isArray(entry)) return undefined
  const [sequence, checksum, previousChecksum, kind, subjectId, hash, expiresAt = null] = entry
  const texts = [checksum, previousChecksum, subjectId, hash]
  if (!Number.isSafeInteger(sequence) || !KINDS.includes(kind)) return undefined
  if (!texts.every((text) => typeof text === 'string')) return undefined
  if (expiresAt !== null && !Number.isSafeInteger(expiresAt)) return undefined
  return { sequence, checksum, previousChecksum, kind, subjectId, hash, expiresAt }
}
