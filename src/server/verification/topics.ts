// A topic identifies a workspace in the stream of changes. Every edge gets every change, so the stream has no
// slugs: only an edge that has verified a key of the workspace knows its topic.
import { createHmac, createSecretKey, hkdfSync } from 'node:crypto'

const TOPIC_BYTES = 16

/** `serverSecret` is ADIT_SECRET. */
export function createTopics(serverSecret: string): (workspaceId: string) => string {
  const secret = createSecretKey(new Uint8Array(hkdfSync('sha256', serverSecret, '', 'adit edge topic', 32)))
  return (workspaceId) =>
    createHmac('sha256', secret).update(workspaceId).digest().subarray(0, TOPIC_BYTES).toString('base64url')
}
