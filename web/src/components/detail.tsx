// A name and its value in a list of details (`dl`).
import { Text } from '@mantine/core'
import type { ReactNode } from 'react'

export const Detail = ({ name, children }: { name: string; children: ReactNode }) => (
  <div>
    <Text component="dt" size="xs" c="dimmed" fw={600}>
      {name}
    </Text>
    <Text component="dd" m={0} size="sm" className="tabular">
      {children}
    </Text>
  </div>
)
