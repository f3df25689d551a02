// The files of the inspector's page: in the package of the client they are beside the program, otherwise
// among those that are built with the whole program.
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { PageFiles } from '../../inspector/server/page.ts'

export async function openInspectorPage(): Promise<PageFiles> {
  const folder = new URL('inspector/', import.meta.url)
  if (existsSync(folder)) return openFolder(folder)
  // Not loaded before: it needs modules that the oldest Node of the client does not have.
  const { openProgramFiles } = await import('../../lib/program-files.ts')
  return openProgramFiles('web/dist/inspector')
}

const openFolder = (folder: URL): PageFiles => ({
  names: new Set(['index.html', ...readdirSync(new URL('assets', folder)).map((name) => `assets/${name}`)]),
  read: (name) => readFile(new URL(name, folder)),
})
