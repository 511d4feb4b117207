#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdatomic.h>
static PMEMobjpool *pop; static unsigned arena; static atomic_int stop; static int wrong, allocs;
static void *other(void*a){ pmemobj_ctl_set(pop,"heap.thread.arena_id",&arena);
 while(!stop){ PMEMoid o; if(pmemobj_zalloc(pop,&o,4000,1)) continue; char*p=pmemobj_direct(o); memset(p,0x42,4000); pmemobj_persist(pop,p,4000); allocs++;
  struct timespec t={0,3000000}; nanosleep(&t,0);
  for(int i=0;i<4000;i++) if(p[i]!=0x42){wrong++;break;} pmemobj_free(&o);} return 0;}
int main(int c,char**v){ pop=pmemobj_create(v[1],"r",16<<20,0600); if(!pop)return 1; 
 int before=c>2&&atoi(v[2]);
 pmemobj_ctl_exec(pop,"heap.arena.create",&arena); pmemobj_ctl_set(pop,"heap.thread.arena_id",&arena);
 pthread_t t; pthread_create(&t,0,other,0);
 for(volatile int i=0;i<1500;i++){ struct pobj_action act; PMEMoid o=pmemobj_reserve(pop,&act,4000,1); if(OID_IS_NULL(o)) continue;
  char*p=pmemobj_direct(o); memset(p,i,4000);
  TX_BEGIN(pop){ if(before){pmemobj_tx_add_range(o,0,4000); pmemobj_tx_publish(&act,1);} else {pmemobj_tx_publish(&act,1);pmemobj_tx_add_range(o,0,4000);} memset(p,7,4000); pmemobj_tx_abort(1);} TX_END }
 stop=1; pthread_join(t,0); printf("allocs %s wrong %d\n",allocs>0?"some":"none",wrong); pmemobj_close(pop); return 0;}
