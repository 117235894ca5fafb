// The paths of the service's interface on SAP CAP: a server that nobody here wrote.
@path: '/odata'
service ecmsync {
  entity synchronizationactivities { key activityId : Integer64; state : String; }
  entity syncconflictdetails { key conflictId : Integer; }
  entity syncjobs { key syncJobId : Integer; name : String; }
  entity ecmidentities { key id : UUID; idAsNumber : Integer64; name : String; isAdministrator : Boolean; }
    actions { function userorgroup(in : many $self, id : UUID, repository : String) returns many ecmidentities; }
}
