// Builds executables, and finds what a program needs in a root of its own.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../support/processes/process.ts'

export const executablesFolder = join(root, 'executables')
let built: string | undefined

/** The path of the executable of this machine, which is built once for all files of this folder. */
export function buildExecutable(): string {
  const platform = `linux-${process.arch}`
  if (!built) {
    execFileSync(process.execPath, [join(root, 'scripts/bundle.ts')])
    buildFor(platform)
  }
  built = join(executablesFolder, `adit-${platform}`)
  return built
}

export const buildFor = (...platforms: string[]) =>
  execFileSync(process.execPath, [join(root, 'scripts/executables.ts'), ...platforms], { stdio: 'inherit' })

/** The paths of the shared libraries of a program, and of their loader. */
export const listLibraries = (program: string): string[] =>
  Array.from(execFileSync('ldd', [program], { encoding: 'utf8' }).matchAll(/\/\S+/g), ([path]) => path)
