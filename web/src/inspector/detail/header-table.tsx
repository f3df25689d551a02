import { Text } from '@mantine/core'
import type { Header } from '../../../../src/inspector/api.ts'
import classes from './detail.module.css'

export function HeaderTable({ headers, label }: { headers: readonly Header[]; label: string }) {
  if (headers.length === 0)
    return (
      <Text size="sm" c="dimmed" p="md">
        No headers.
      </Text>
    )
  return (
    <table className={classes.headers} aria-label={label}>
      <tbody>
        {headers.map(({ name, value, masked }, index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td>
              {masked ? (
                <Text span inherit c="dimmed" title="Masked. “Show masked values” shows it.">
                  {value}
                </Text>
              ) : (
                value
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
