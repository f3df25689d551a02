// Verifies keys by a tokens file, for an edge without a control plane. The file is looked at again and again, so that an
// edit is in force at once; one that cannot be read is refused, and the last good one stays in force.
import { hash as digest } from 'node:crypto'
import { statSync } from 'node:fs'
import { createNoticeOnce } from './notice-once.ts'
import { safeCallback } from './safe-callback.ts'
import { readTokensFile, type Token } from './tokens-file.ts'
import type { Verifier } from './verifier.ts'

const LOOK_EVERY_MS = 500

export interface TokensFileOptions {
  /** The domain under which tunnels live: those of a workspace under `<workspace>.<domain>`. */
  tunnelDomain: string
  /** A token was removed: whatever it has opened here is to be closed. */
  onRevoked?: (keyId: string) => void
  /** A line for the log: that the file was read again, or is refused. */
  onNotice?: (line: string) => void
}

/** Throws a TokensFileError where the file cannot be used from the start. */
export function openTokensFile(path: string, { tunnelDomain, ...callbacks }: TokensFileOptions): Verifier {
  const onRevoked = safeCallback(callbacks.onRevoked)
  const onNotice = safeCallback(callbacks.onNotice)
  let seen = stateOf(path)
  let tokens = byHash(readTokensFile(path))
  /** Hashes of those that were there before. */
  const removed = new Set<string>()
  const refusal = createNoticeOnce(onNotice, `The tokens file ${path} is good again.`)

  function look(): void {
    const state = stateOf(path)
    if (state === seen) return
    seen = state
    try {
      const before = tokens
      tokens = byHash(readTokensFile(path))
      refusal.end()
      onNotice(`The tokens file ${path} was read again and holds ${amount(tokens)}.`)
      for (const [hash, { id, workspace }] of before) {
        const after = tokens.get(hash)
        if (!after) removed.add(hash)
        if (after?.id !== id || after.workspace !== workspace) onRevoked(id)
      }
    } catch (error) {
      refusal.begin(`${(error as Error).message} What it held before stays in force: ${amount(tokens)}.`)
    }
  }

  const timer = setInterval(look, LOOK_EVERY_MS)
  timer.unref()

  return {
    async verify(key) {
      const hash = digest('sha256', key, 'hex')
      const token = tokens.get(hash)
      if (!token) return { valid: false, reason: removed.has(hash) ? 'revoked' : 'unknown' }
      const slug = token.workspace
      return {
        valid: true,
        keyId: token.id,
        workspace: { slug, name: slug, provisioned: true, tunnelBase: `${slug}.${tunnelDomain}` },
      }
    },
    close: () => clearInterval(timer),
  }
}

const amount = ({ size }: { size: number }) => (size === 1 ? '1 token' : `${size} tokens`)

const byHash = (tokens: Token[]) => new Map(tokens.map((token) => [token.hash, token]))

/** Changes whenever the file does, also when another one takes its place. */
function stateOf(path: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}
