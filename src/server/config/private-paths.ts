// Files and folders with data or secrets, for commands that must not publish them.
import { dirname } from 'node:path'
import { dataFolder } from './data-folder.ts'
import { parseEdgeConfig } from './edge.ts'
import { profilesPath, TOKENS_FILE } from './environment.ts'
import { parseConfig } from './server.ts'

export function privatePaths(): string[] {
  const { database } = parseConfig().config
  const { folder } = parseEdgeConfig().config
  return [
    ...(database?.engine === 'sqlite' ? [database.path] : []),
    folder,
    dataFolder(),
    dirname(profilesPath()),
    TOKENS_FILE,
  ]
}
