// Verifies keys against a tokens file, for an edge without a control plane. The file is polled for changes;
// an invalid file is rejected, and the last valid one stays in effect.
import { statSync } from 'node:fs'
import { hashSecret } from '../../lib/credentials/secret.ts'
import { createNoticeOnce } from '../notice-once.ts'
import { safeCallback } from '../safe-callback.ts'
import { readTokensFile, type Token } from './tokens-file.ts'
import type { Verifier } from './verifier.ts'

const POLL_INTERVAL_MS = 500

export interface TokensFileOptions {
  /** Parent domain of all tunnels: those of a workspace are under `<workspace>.<domain>`. */
  tunnelDomain: string
  /** A key was removed: close its tunnels. */
  onRevoked?: (keyId: string, reason: 'revoked', hash: string) => unknown
  /** Called with a line for the log when the file was reloaded or rejected. */
  onNotice?: (line: string) => void
}

/** Throws a TokensFileError if the file is missing or invalid. */
export function openTokensFile(path: string, { tunnelDomain, ...callbacks }: TokensFileOptions): Verifier {
  const onRevoked = safeCallback(callbacks.onRevoked)
  const onNotice = safeCallback(callbacks.onNotice)
  let version = fileVersion(path)
  let tokens = byHash(readTokensFile(path))
  /** Hashes of removed keys, which are reported as revoked and not as unknown. */
  const removed = new Set<string>()
  const rejection = createNoticeOnce(onNotice, `The tokens file ${path} is valid again.`)

  function poll(): void {
    const current = fileVersion(path)
    if (current === version) return
    version = current
    try {
      const before = tokens
      tokens = byHash(readTokensFile(path))
      rejection.end()
      onNotice(`Reloaded the tokens file ${path} with ${keyCount(tokens)}.`)
      for (const [hash, { id, workspace }] of before) {
        const after = tokens.get(hash)
        if (!after) removed.add(hash)
        if (after?.id !== id || after.workspace !== workspace) onRevoked(id, 'revoked', hash)
      }
    } catch (error) {
      const { message } = error as Error
      rejection.begin(`${message} The last valid version with ${keyCount(tokens)} stays in effect.`)
    }
  }

  const timer = setInterval(poll, POLL_INTERVAL_MS)
  timer.unref()

  return {
    async verify(key) {
      const hash = hashSecret(key)
      const token = tokens.get(hash)
      if (!token) return { valid: false, reason: removed.has(hash) ? 'revoked' : 'unknown' }
      const slug = token.workspace
      return {
        valid: true,
        keyId: token.id,
        workspace: {
          slug,
          name: slug,
          provisioned: true,
          tunnelBase: `${slug}.${tunnelDomain}`,
          topic: slug,
        },
      }
    },
    async findHost(host) {
      if (host === tunnelDomain) return { found: true, workspace: null }
      for (const { workspace } of tokens.values())
        if (host === `${workspace}.${tunnelDomain}`) return { found: true, workspace }
      return { found: false }
    },
    // Without a control plane, names are not claimed.
    grant: async () => undefined,
    isUpToDate: () => true,
    quotaReachedUntil: () => undefined,
    cluster: undefined,
    changes: undefined,
    close: () => clearInterval(timer),
  }
}

const keyCount = ({ size }: { size: number }) => (size === 1 ? '1 key' : `${size} keys`)

const byHash = (tokens: Token[]) => new Map(tokens.map((token) => [token.hash, token]))

/** Changes whenever the file is written or replaced. */
function fileVersion(path: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}
