// A tokens file, the command that edits it, and verifiers that read it.
import { join } from 'node:path'
import { openTokensFile } from '../../src/edge-sdk/index.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { run } from '../support/processes/process.ts'

export function setUpTokensFile(t: Test) {
  const file = join(createFolder(t), 'tokens.json')
  const command = (...args: string[]) => run(t, ['tokens-file', ...args, '--file', file], {})
  const add = async (workspace: string) => (await command('add', workspace)).stdout.trim()
  const revokedIds: string[] = []
  const notices: string[] = []
  const open = () => {
    const verifier = openTokensFile(file, {
      tunnelDomain: 'tunnels.example.com',
      onRevoked: (id) => revokedIds.push(id),
      onNotice: (line) => notices.push(line),
    })
    atEnd(t, verifier.close)
    return verifier
  }
  return { file, command, add, open, revokedIds, notices }
}
