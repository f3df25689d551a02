import { StartupError } from '../startup-error.ts'

export interface ListenAddress {
  host: string
  port: number
}

/** `settings`: what the names of the settings of the address begin with. */
export const listenError = (address: ListenAddress, settings: string, error: unknown): StartupError =>
  new StartupError('address', explain(address, settings, error as NodeJS.ErrnoException), error)

function explain(
  { host, port }: ListenAddress,
  settings: string,
  { code, message }: NodeJS.ErrnoException,
): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Another program listens on ${host}:${port}. Stop it, or set ${settings}_PORT to a free port.`
    case 'EACCES':
      return `This user may not listen on port ${port}. Set ${settings}_PORT to one above 1023.`
    default:
      return `Cannot listen on ${host}:${port}: ${message}. Check ${settings}_HOST and ${settings}_PORT.`
  }
}
