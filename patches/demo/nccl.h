/* Which NCCL the bundled tree's operation is declared for; it calls nothing of it. */
#ifndef NCCL_H_
#define NCCL_H_

#define NCCL_MAJOR 2
#define NCCL_MINOR 2

#endif /* NCCL_H_ */
